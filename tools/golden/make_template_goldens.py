#!/usr/bin/env python3
"""Make tests/text/goldens/template_constructs.json: chats in templates that use one construct each, as transformers renders them.

  python tools/golden/make_template_goldens.py tests      (transformers 5.24.0, jinja2 3.1.6)

The templates are written here. Each is named after what it uses of Jinja, as chat templates of published models use it, and
renders four chats, without and with tools.
"""
import json
import os
import sys

import tokenizers
import transformers

HEAD, FOOT = "{% for m in messages %}", "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TEXT = "{% set text = m.content if m.content is string else (m.content or [])|selectattr('type', 'equalto', 'text')|map(attribute='text')|join %}"


def each(body):
    """A template whose body has the variables m (a message) and text."""
    return HEAD + TEXT + body + FOOT


TEMPLATES = {
    "plain output": each("<{{ m.role }}>{{ text }}\n"),
    "item access": HEAD + "{{ m['role'] ~ ': ' ~ (m['content'] if m['content'] is string else '') }}\n" + FOOT,
    "if, elif, else": each("{% if m.role == 'system' %}S{% elif m.role == 'user' %}U{% elif m.role in ['tool', 'ipython'] %}T{% else %}A{% endif %}{{ text }}|"),
    "white space control": "{%- for m in messages -%}\n  {%- if m.role == 'user' %}\n    [INST] {{ m.content -}}  \n  [/INST]\n  {%- else -%}\n  {{- ' ' }} x {{ m.role -}}\n  {%- endif -%}\n{%- endfor -%}\n",
    "blocks on lines of their own": "{% for m in messages %}\n    {% if loop.first %}\n{{ bos_token }}\n    {% endif %}\n{{ m.role }}\n{% endfor %}\nend\n",
    "kept white space": "{%+ for m in messages +%} {{ m.role }} {%+ endfor +%}\n  {#- a comment -#}  \n.",
    "loop variables": HEAD + "{{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }}{{ ' first' if loop.first }}{{ ' last' if loop.last }} {{ loop.previtem.role if loop.previtem is defined }}>{{ loop.nextitem.role if loop.nextitem is defined }};" + FOOT,
    "loop filter and else": "{% for m in messages if m.role == 'user' %}{{ m.role }}{{ loop.index }} {% else %}nobody{% endfor %}{% for t in tools or [] %}{{ t.function.name }}{% else %} no tools{% endfor %}",
    "break and continue": "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.role }},{% if m.role == 'assistant' %}{% break %}{% endif %}{% endfor %}",
    "namespace": "{% set ns = namespace(system='', users=0, seen=[]) %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.system = m.content %}{% elif m.role == 'user' %}{% set ns.users = ns.users + 1 %}{% set ns.seen = ns.seen + [loop.index0] %}{% endif %}{% endfor %}{{ ns.system }}|{{ ns.users }}|{{ ns.seen }}",
    "set block": each("{% set block %}<{{ m.role }}>\n{{ text }}{% endset %}{{ block|trim|upper if m.role == 'system' else block }}\n"),
    "scope of set": "{% set x = 'out' %}{% for m in messages %}{% set x = m.role %}{{ x }},{% endfor %}{{ x }}{% if true %}{% set x = 'if' %}{% endif %}{{ x }}",
    "macro": "{% macro turn(role, text, open='<', close='>') %}{{ open }}{{ role }}{{ close }}{{ text }}{% endmacro %}" + each("{{ turn(m.role, text) }}{{ turn(role='r', text='t', close='/>') }}"),
    "macro that calls itself": "{% macro type_of(p) %}{% if p.type is string %}{{ p.type }}{% if p.type == 'array' and p['items'] is defined %}<{{ type_of(p['items']) }}>{% endif %}{% elif p.type is iterable %}{{ p.type|join(' | ') }}{% else %}any{% endif %}{% endmacro %}{% for t in tools or [] %}{{ t.function.name }}({% for k, p in t.function.parameters.properties|items %}{{ k }}: {{ type_of(p) }}{{ ', ' if not loop.last }}{% endfor %}){% endfor %}{{ messages|length }}",
    "macros that call macros": "{%- macro quoted(t) -%}\"{{ t }}\"{%- endmacro -%}{%- macro pair(k, v) -%}{{ quoted(k) }}: {{ quoted(v) if v is string else v|tojson }}{%- endmacro -%}" + HEAD + "{% for k, v in m|items %}{{ pair(k, v) }}{{ ', ' if not loop.last }}{% endfor %};" + FOOT,
    "slices": "{% set rest = messages[1:] if messages[0].role == 'system' else messages %}{{ rest|length }} {% for m in rest[::-1] %}{{ m.role[:2] }}{{ m.role[-1] }} {% endfor %}{{ messages[-1].role }}{{ messages[:-1]|length }}{{ 'abcdef'[1:5:2] }}",
    "replaced messages": "{% for i in range(messages|length) %}{% set m = messages[0] %}{{ m.role }}>{% set messages = messages[1:] %}{{ messages|length }};{% endfor %}{{ messages|length }}",
    "selectattr and map": "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='role')|list|length }}{{ messages|rejectattr('role', 'in', ['user', 'system'])|map(attribute='role')|join('+') }}{{ messages|selectattr('tool_calls', 'defined')|list|length }}{{ (tools or [])|map(attribute='function.name')|join(', ') }}",
    "select, reject, unique, sort": "{{ messages|map(attribute='role')|unique|sort|join(' ') }}{{ messages|map(attribute='role')|map('length')|select('gt', 4)|list }}{{ [1, 2, 3, 4]|reject('odd')|list }}{{ messages|map(attribute='role')|map('upper')|unique|list|last }}",
    "dictsort and items": HEAD + "{% for k, v in m|dictsort %}{{ k }}={{ v if v is string }};{% endfor %}{% for k in m.keys() %}{{ k }} {% endfor %}" + FOOT,
    "tojson": "{{ messages|tojson }}\n{{ messages[0]|tojson(indent=2) }}\n{{ {'é': [1.5, none, true], 'b': '</tag>'}|tojson }}{{ (tools or [])|tojson(indent=4) }}",
    "tojson with options": "{{ messages[-1]|tojson(ensure_ascii=true) }}{{ messages[-1]|tojson(separators=(',', ':')) }}{{ messages[-1]|tojson(sort_keys=true, ensure_ascii=false) }}",
    "text methods": each("{{ text.strip().split('\\n')[0].lstrip() }}|{{ text.startswith('<think>') }}|{{ text.rstrip('.').endswith('4') }}|{{ text.replace('\\n', '\\\\n').title() }}\n"),
    "reasoning": each("{% if m.role == 'assistant' and '</think>' in text %}{% set why = text.split('</think>')[0].split('<think>')[-1].strip('\\n') %}{% set text = text.split('</think>')[-1].lstrip('\\n') %}[{{ why }}]{% elif m.reasoning_content is defined and m.reasoning_content %}[{{ m.reasoning_content|trim }}]{% endif %}{{ m.role }}: {{ text }}\n"),
    "tool calls": HEAD + "{% if m.tool_calls %}{% for call in m.tool_calls %}{% if call.function %}{% set call = call.function %}{% endif %}<call>{\"name\": \"{{ call.name }}\", \"arguments\": {{ call.arguments if call.arguments is string else call.arguments|tojson }}}</call>{% endfor %}{% elif m.role == 'tool' %}{% if loop.previtem.role != 'tool' %}<results>{% endif %}{{ m.content }}{% if loop.last or loop.nextitem.role != 'tool' %}</results>{% endif %}{% else %}{{ m.role }}{% endif %}\n" + FOOT,
    "tools described": "{% if tools is defined and tools is not none and tools|length > 0 %}{% for tool in tools %}{% set f = tool.function if tool.function is defined else tool %}{{ loop.index }}. {{ f.name }}{% if f.description %}: {{ f.description }}{% endif %}\n{% for name in f.parameters.properties %}{% set p = f.parameters.properties[name] %}- {{ name }} ({{ p.type if p.type is string else p.type|join(' or ') }}{% if name in f.parameters.required %}, required{% endif %}){% if p.enum is defined %} one of {{ p.enum|join('/') }}{% endif %}\n{% endfor %}{% endfor %}{% else %}no tools{% endif %}{{ messages|length }}",
    "parts of a message": HEAD + "{% if m.content is string %}{{ m.content }}{% elif m.content is iterable and m.content is not mapping %}{% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}{% elif 'image' in part or part['type'] == 'image' %}<image>{% else %}?{% endif %}{% endfor %}{% endif %}|" + FOOT,
    "exceptions": "{% if messages[0].role not in ('system', 'user') %}{{ raise_exception('the first message is of ' ~ messages[0].role) }}{% endif %}{% for m in messages %}{% if m.role == 'tool' and not tools %}{{ raise_exception('no tools') }}{% endif %}{{ m.role }} {% endfor %}",
    "alternation": "{% set ns = namespace(i=0) %}{% for m in messages %}{% if m.role in ['user', 'assistant'] and not m.tool_calls %}{% if (m.role == 'user') != (ns.i % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{% set ns.i = ns.i + 1 %}{% endif %}{% endfor %}{{ ns.i }}",
    "defaults and definedness": "{{ missing|default('d') }}{{ ''|default('e', true) }}{% if not tools is defined %}{% set tools = none %}{% endif %}{{ tools is none }}{{ enable_thinking is defined and enable_thinking is false }}{{ (system_message or 'none')|upper }}{{ messages[0].name is undefined }}{{ bos_token is defined }}",
    "arithmetic": "{{ messages|length * 2 - 1 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 7 / 2 }} {{ 2 + 3 * 4 }} {{ -7 // 2 }} {{ (messages|length + 1) // 2 * 1.5 }} {{ 5 - -2 }} {{ '-' * 3 }}{{ 2 * 'ab' }}{{ 'x' * -1 }}|",
    "comparisons and logic": "{% for m in messages %}{{ loop.index0 > 0 and not loop.last or m.role == 'system' }}{{ 0 < loop.index <= 2 }}{{ m.role != 'user' }}{{ 'a' in m.role }}{{ m.role not in ['user'] }} {% endfor %}",
    "conditional expressions": HEAD + "{{ 'user' if m.role == 'user' else ('model' if m.role == 'assistant' else m.role) }}{{ '!' if loop.last }}{{ ('a' if loop.first) ~ ('b' if not loop.first else '') }} " + FOOT,
    "concatenation": each("{{ '<|' + m.role + '|>' + '\\n' + text + eos_token + '\\n' }}{{ m.role ~ loop.index ~ none ~ true }}"),
    "lists and mappings": "{% set names = {'user': 'U', 'assistant': 'A', 'system': 'S'} %}{% for m in messages %}{{ names[m.role] if m.role in names else names.get(m.role, '?') }}{% endfor %}{% set all = [] %}{% for m in messages %}{% set all = all + [m.role] %}{% endfor %}{{ all }}{{ ['x', 'y'] + ['z'] }}{{ {'a': {'b': [1, 2]}}.a.b[1] }}",
    "tests": "{% for v in ['s', 1, 1.5, true, none, [], {}, messages] %}{{ v is string }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is boolean }}{{ v is none }}{{ v is mapping }}{{ v is sequence }}{{ v is iterable }}{{ v is true }} {% endfor %}{{ 4 is even }}{{ 3 is divisibleby 3 }}{{ 2 is gt 1 }}",
    "filters of texts": each("{{ text|trim|length }}{{ text|lower|replace('a', '4')|capitalize }}{{ text|indent(2) }}{{ '%s' }}{{ '12'|int + 1 }}{{ '1.5'|float }}{{ text|first }}{{ text|last }}{{ text|string|reverse }}\n"),
    "format": "{{ '{} of {}'.format(messages|length, 'x') }}{% for m in messages %}{{ '[{0}:{1}]'.format(m.role, loop.index) }}{% endfor %}",
    "a date": "{% if strftime_now is defined %}{% set date = strftime_now('%d %b %Y') %}{% else %}{% set date = '26 Jul 2024' %}{% endif %}{{ date|length > 8 }}{{ messages[0].role }}{% if not date_string is defined %}{% set date_string = 'Today' %}{% endif %}{{ date_string }}",
    "everything at once": "{{- bos_token }}{%- macro say(role, text) %}{{- '<|' ~ role ~ '|>' ~ text|trim ~ '<|end|>' }}{%- endmacro %}{%- set ns = namespace(last=-1) %}{%- for m in messages[::-1] %}{%- if ns.last < 0 and m.role == 'user' %}{%- set ns.last = messages|length - 1 - loop.index0 %}{%- endif %}{%- endfor %}{%- if tools %}{{- say('tools', tools|map(attribute='function')|map('tojson')|join('\\n')) }}{%- endif %}{%- for m in messages %}{%- set text = m.content if m.content is string else '' %}{%- if m.tool_calls %}{%- for c in m.tool_calls %}{{- say('call', c.function|tojson) }}{%- endfor %}{%- elif loop.index0 > ns.last and m.role == 'assistant' %}{{- say('final', text) }}{%- else %}{{- say(m.role, text) }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}",
}

TOOLS = [{"type": "function", "function": {
              "name": "weather", "description": "The weather of a place.",
              "parameters": {"type": "object", "required": ["place"],
                             "properties": {"place": {"type": "string"}, "unit": {"type": ["string", "null"], "enum": ["°C", "°F"]}}}}},
         {"type": "function", "function": {
              "name": "add", "description": "",
              "parameters": {"type": "object", "required": [], "properties": {"terms": {"type": "array", "items": {"type": "number"}}}}}}]
CHATS = [[{"role": "user", "content": "Hello, who are you?"}],
         [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "  Was ist 2+2? "},
          {"role": "assistant", "content": "<think>\neasy\n</think>\n\n It is 4."}, {"role": "user", "content": "日本は?\n\"quoted\" 'x'"}],
         [{"role": "user", "content": "The weather?"},
          {"role": "assistant", "content": "", "reasoning_content": "I ask. ",
           "tool_calls": [{"type": "function", "id": "a1", "function": {"name": "weather", "arguments": {"place": "Köln", "unit": None}}}]},
          {"role": "tool", "tool_call_id": "a1", "content": "{\"t\": 21.5}"}, {"role": "tool", "tool_call_id": "a2", "content": "dry"},
          {"role": "assistant", "content": "21.5 °C."}, {"role": "user", "content": "Thanks"}],
         [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image"}, {"type": "text", "text": " Say."}]},
          {"role": "assistant", "content": "A cat."}]]


def main():
    vocabulary = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "</s>": 1}, unk_token="<s>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=vocabulary, bos_token="<s>", eos_token="</s>")
    cases = []
    for name, template in TEMPLATES.items():
        for chat, messages in enumerate(CHATS):
            for tools in (None, TOOLS):
                case = {"template": name, "chat": chat, "tools": tools is not None}
                try:
                    case["text"] = tokenizer.apply_chat_template(messages, tools=tools, chat_template=template, tokenize=False,
                                                                 add_generation_prompt=True)
                except Exception as error:  # what the template raises, or what jinja2 refuses
                    case["error"] = str(error)
                cases.append(case)
    out = {"versions": {"transformers": transformers.__version__}, "templates": TEMPLATES, "chats": CHATS, "tools": TOOLS, "cases": cases}
    with open(os.path.join(sys.argv[1], "text/goldens/template_constructs.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(out, ensure_ascii=False).replace('{"template": ', '\n{"template": ').replace(", \n", ",\n") + "\n")
    print(len(TEMPLATES), "templates,", len(cases), "cases,", sum("error" in case for case in cases), "errors")
    for case in cases:
        if "error" in case:
            print(case)


main()
