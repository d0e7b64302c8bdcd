#!/usr/bin/env python3
"""Make tests/finetune/goldens/assistant_masks.json: the ids of chats and which of them are the assistant's, as transformers'
apply_chat_template(return_assistant_tokens_mask=True) gives them for templates with {% generation %} blocks.

  python tools/golden/make_assistant_masks.py tests      (transformers 5.24.0)
"""
import json
import os
import sys

import transformers

TEMPLATES = {
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content + '<|im_end|>' }}"
              "{% endgeneration %}{% else %}{{ m.content + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}",
    "llama3": "{% for m in messages %}{{ '<|start|>' ~ m.role ~ '<|end|>\\n\\n' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content | trim ~ '<|eot|>' }}"
              "{% endgeneration %}{% else %}{{ m.content | trim ~ '<|eot|>' }}{% endif %}{% endfor %}",
    "blocks": "{%- for m in messages %}\n  {%- if m['role'] == 'user' %}\n[INST] {{ m['content'] }} [/INST]\n  {%- elif m['role'] == 'assistant' %}\n"
              "    {%- generation %}\n {{ m['content'] }}</s>\n    {%- endgeneration %}\n  {%- endif %}\n{%- endfor %}\n",
    "last": "{% for m in messages %}{% if loop.last and m.role == 'assistant' %}{% generation %}{{ m.content }}</s>{% endgeneration %}"
            "{% else %}{{ m.role }}: {{ m.content }}</s>{{ '\\n' }}{% endif %}{% endfor %}",
    "two": "{% for m in messages %}{% if m.role == 'assistant' %}<a>{% generation %}{{ m.content.split(' ')[0] }}{% endgeneration %}|"
           "{% generation %}{{ m.content }}{% endgeneration %}</a>{% else %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endif %}{% endfor %}",
}
CHATS = [
    [("user", "Hello there"), ("assistant", "Hi. How are you?")],
    [("system", "Be brief."), ("user", "What is 2 + 2?"), ("assistant", "4"), ("user", "And 3 + 3?"), ("assistant", "It is 6.")],
    [("user", "日本は?"), ("assistant", "Größe: 10 m²\n\nfine"), ("user", "x"), ("assistant", "y = f(x)")],
    [("user", "Say nothing else."), ("assistant", "One\ntwo\n three"), ("user", "ok")],
]


def main():
    folder = os.path.join(sys.argv[1], "text/goldens/trained")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"))
    cases = []
    for name, template in TEMPLATES.items():
        for chat in CHATS:
            messages = [{"role": role, "content": content} for role, content in chat]
            out = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=True, return_dict=True,
                                                return_assistant_tokens_mask=True)
            cases.append({"template": name, "messages": messages, "ids": out["input_ids"],
                          "mask": "".join(map(str, out["assistant_masks"]))})
    with open(os.path.join(sys.argv[1], "finetune/goldens/assistant_masks.json"), "w", encoding="utf-8") as file:
        json.dump({"transformers": transformers.__version__, "templates": TEMPLATES, "cases": cases}, file, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
