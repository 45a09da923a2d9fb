"""Whether an answer can be relied on: doubts, confidence, decision, reasons."""
