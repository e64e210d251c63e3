"""Releases over the Model Context Protocol."""
