"""The paper's comparison as commands: methods × budgets × repeats × secrets, tables and figures."""
