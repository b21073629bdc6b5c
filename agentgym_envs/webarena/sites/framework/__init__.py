"""The small web framework of the embedded sites: routes, requests, responses, login and page rendering."""
