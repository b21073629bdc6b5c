"""Episodes as tools of the Model Context Protocol (MCP), over stdio or streamable HTTP."""
