"""Text: tokenizers, chat templates and their conversions. No model, no network."""
