"""Documents on their way in and at rest: uploads, originals, chunks, and the LlamaIndex vector store over them."""
