"""arcwise: learn, measure, show and use embeddings that are separated by angle."""
