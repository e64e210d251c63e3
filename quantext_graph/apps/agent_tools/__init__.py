"""Tools that let an agent make a release."""
