"""The mechanism for a spec: its guarantee, its draw (Alg. 1 lines 1-14), its trade-off, in plain words."""
