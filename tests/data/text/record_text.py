"""Records what transformers renders and what the models' own tokenizer.json gives.

  python tests/data/text/record_text.py NAME=FOLDER ...

FOLDER is a Hugging Face folder of the model with tokenizer.json and tokenizer_config.json. Needs
transformers. Writes NAME.json beside this script.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from conversations import CHATS, strings  # noqa: E402


def render(template: str, special_tokens: dict[str, str]) -> list[str]:
    """Each conversation as transformers renders it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    texts = []
    for chat in CHATS:
        settings = {"add_generation_prompt": True, **chat}
        messages = settings.pop("messages")
        messages = [{k: v for k, v in m.items() if v is not None} for m in messages]
        rendered, _ = render_jinja_template(
            conversations=[messages], chat_template=template, **special_tokens, **settings
        )
        texts.append(rendered[0])
    return texts


def record(folder: Path) -> dict[str, object]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    chats = []
    for chat in CHATS:
        settings = {"add_generation_prompt": True, **chat}
        chats.append(
            tokenizer.apply_chat_template(
                tokenize=False, conversation=settings.pop("messages"), **settings
            )
        )
    return {"chats": chats, "ids": [tokenizer.encode(text) for text in strings()]}


def main() -> None:
    for argument in sys.argv[1:]:
        name, _, folder = argument.partition("=")
        text = json.dumps(record(Path(folder)), ensure_ascii=True, separators=(",", ":"))
        (HERE / f"{name}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
