"""How time per token and peak memory grow with the length, the batch, the corpus, the vocabulary and the stream."""
