"""Thin, deterministic LangChain tools over mechanism, data and audit; imported as `quantext_graph.tools`."""
