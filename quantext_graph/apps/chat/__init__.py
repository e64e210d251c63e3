"""A release as a conversation."""
