"""Guards: prompt injection on the way in; links, leaks and forbidden statements on the way out."""
