"""What a search reads: its scope, lexical search (BM25 over postings), dense search, and the hits."""
