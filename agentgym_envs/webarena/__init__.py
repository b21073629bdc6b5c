"""Web tasks in a real browser. `import agentgym_envs` registers the environments."""
