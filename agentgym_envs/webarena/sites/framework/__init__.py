"""What the sites are made with: requests and answers, routes, signing in, pages, and the application of them all."""
