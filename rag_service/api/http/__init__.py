"""What all routes share: bodies in, problems, schemas and events out, and what surrounds a request."""
