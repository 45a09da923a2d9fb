"""Words, sentences and tokens of the supported languages."""
