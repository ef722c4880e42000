"""HTTP: Falcon resources over a `Front`, served by uvicorn. No logic of models lives here."""
