"""What must not pass: orders in documents on their way in; links, leaks and forbidden statements on the way out."""
