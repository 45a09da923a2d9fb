"""One call that streams an answer from any LlamaIndex LLM, in time."""
