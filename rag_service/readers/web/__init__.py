"""Web pages, e-books and XML."""
