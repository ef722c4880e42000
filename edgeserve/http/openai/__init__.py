"""The resources of OpenAI's API, one per file."""
