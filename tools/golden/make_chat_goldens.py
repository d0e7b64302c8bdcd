#!/usr/bin/env python3
"""Make tests/text/goldens/chat_templates.json: chats as transformers' apply_chat_template() renders them.

  python tools/golden/make_chat_goldens.py tests      (transformers 5.23.0)

The templates are written here in the manner of the published ones (ChatML, LLaMA-2, LLaMA-3, Qwen2, Mistral, Zephyr and
others), with the constructs that these use.
"""
import json
import os
import sys

import tokenizers
import transformers

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
QWEN2 = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
         "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}"
         "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}
{% else %}{% set rest = messages %}{% set system = false %}{% endif %}
{% for message in rest %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{% if loop.index0 == 0 and system != false %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}
{% else %}{% set content = message['content'] %}{% endif %}
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
{% elif message['role'] == 'assistant' %}{{ ' ' + content | trim + ' ' + eos_token }}{% endif %}{% endfor %}"""
LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}"
          "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim"
          " + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")
LLAMA31 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The system message comes first -#}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("only one call at once") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- call.name ~ ": " ~ call.arguments | tojson }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
        {{- raise_exception("after the optional system message, roles must alternate") }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- else %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- endif %}
{%- endfor %}
"""
ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
QWEN3 = """{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""
# White space, loops, expressions: what the others do not reach.
CORNERS = """  {% for k, v in messages[0].items() %}
    {{ k }}={{ v }}{{ "," if not loop.last }}
  {% endfor %}
{# a comment #}
  {%+ if true %}kept{% endif +%}

{% for c in "héé" %}{{ loop.index }}{{ c }}{{ loop.revindex0 }} {% else %}none{% endfor %}
{% for x in [] %}{% else %}empty{% endfor %}
{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 1 + 2 * 3 - 4 }} {{ 2.0 }} {{ true }} {{ none }} {{ missing }}|
{{ "a" ~ 1 ~ "b" }} {{ "abc"[1:] }} {{ "abcdef"[::-2] }} {{ "abc"[-1] }} {{ [1, 2, 3][-2:]|join("-") }}
{{ {"b": [1, 2.5, "é\\n"], "a": none}|tojson }}
{{ [{"x": {}}, []]|tojson(indent=2) }}
{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ "a" in ["b", "a"] }} {{ "x" not in "abc" }} {{ not false or false and true }}
{{ missing|default("d") }} {{ ""|default("e", true) }} {{ "a b"|title }} {{ "ab"|upper }} {{ "x,y"|replace(",", ";") }} {{ [3, 1]|first }}
{{ "yes" if missing is not defined else "no" }} {{ 4 is even }} {{ "s" is string }} {{ messages[0].get("nope", "dflt") }}
{% set ns = namespace(n=0) %}{% for i in range(1, 10, 3) if i != 4 %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}
{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% set x %}block {{ 1 + 1 }}{% endset %}[{{ x }}]
{{ 'it''s' "two" }}   {{- " left" }}   x   {{ "right " -}}
   end
"""
TEMPLATES = dict(chatml=CHATML, qwen2=QWEN2, llama2=LLAMA2, llama3=LLAMA3, llama31=LLAMA31, mistral=MISTRAL, zephyr=ZEPHYR,
                 qwen3=QWEN3, corners=CORNERS)
CHATS = [[{"role": "user", "content": "Hello, who are you?"}],
         [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "  Was ist 2+2? "},
          {"role": "assistant", "content": "<think>\neasy\n</think>\n\n Vier. "}, {"role": "user", "content": "日本は?\n\"quoted\" 'x'"}],
         [{"role": "assistant", "content": "I begin."}, {"role": "user", "content": ""}]]


def main():
    vocabulary = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "</s>": 1}, unk_token="<s>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=vocabulary, bos_token="<s>", eos_token="</s>")
    cases = []
    for name, template in TEMPLATES.items():
        for messages in CHATS:
            case = {"template": name, "messages": messages}
            try:
                case["text"] = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False,
                                                             add_generation_prompt=True)
            except Exception as error:  # raise_exception in the template
                case["error"] = str(error)
            cases.append(case)
    out = {"versions": {"transformers": transformers.__version__}, "templates": TEMPLATES, "cases": cases}
    with open(os.path.join(sys.argv[1], "text/goldens/chat_templates.json"), "w", encoding="utf-8") as file:
        json.dump(out, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
