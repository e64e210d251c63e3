"""What is done with one text: label, extract, rewrite, verify (Alg. 1 lines 15-18)."""
