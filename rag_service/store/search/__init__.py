"""What a search reads: its scope, the lexical leg (BM25 over postings), the dense leg, and the hits."""
