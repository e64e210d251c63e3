"""The private folder of a run: its store, its ledger, and the release folder that is written from it."""
