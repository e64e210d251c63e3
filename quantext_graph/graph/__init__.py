"""The state machine: the release graph, the graph of one record, and their state."""
