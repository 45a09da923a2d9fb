"""Text recognition in scanned pages and images."""
