"""OpenAI's wire: bodies into calls, pieces into chunks, chunks into whole answers."""
