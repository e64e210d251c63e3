"""The YAML spec: what is released, what is secret, and how."""
