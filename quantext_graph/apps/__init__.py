"""Faces: the command line, the tools of an agent, the chat, the MCP server, Studio, the demo."""
