"""Chat models and embeddings behind one door each, and what keeps text on this machine (`privacy`)."""
