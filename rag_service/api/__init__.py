"""The HTTP interfaces: REST, the OpenAI-compatible API, and MCP."""
