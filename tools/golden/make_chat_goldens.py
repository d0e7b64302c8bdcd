#!/usr/bin/env python3
"""Make tests/text/goldens/chat_templates.json: chats as transformers' apply_chat_template() renders them.

  python tools/golden/make_chat_goldens.py tests      (transformers 5.23.0, jinja2 3.1.6)

The templates are written here in the manner of the published ones (ChatML, LLaMA-2, LLaMA-3, Qwen2, Mistral, Zephyr and
others), with the constructs that these use.
"""
import json
import os
import sys

import jinja2
import tokenizers
import transformers
from transformers.utils.chat_template_utils import _compile_jinja_template

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
# One expression each, with VARIABLES: arguments by place and by name, Python's texts and numbers. What jinja2 refuses, we must
# refuse too.
EXPRESSIONS = r"""
"  a\u3000\u00a0\x1c "|trim ~ "|"
"xxaxx"|trim("x") ~ "xyayx".strip("xy") ~ "\u00e9\u00e8a\u00e9".strip("\u00e9") ~ "aXa".rstrip("a") ~ "aXa".lstrip("a")
"xxaxx"|trim(chars="x")
"a"|trim("x", "y")
"a".strip(chars="a")
"a"|trim(char="a")
"a"|upper("x")
"a".upper(1)
"\u00c4\u0130\u03a3A\u03a3"|lower
"it's a (big) over-all [x]{y}<z>"|title
"it's a (big) over-all 2nd"|string
"it's a (big) over-all 2nd x2y".title()
"hELLO wORLD"|capitalize ~ "1a".capitalize()
"a b  c"|replace(" ", "_")
"aaa"|replace("a", "b", 2) ~ "aaa".replace("a", "b", 1) ~ "aaa"|replace("a", "b", count=0)
"aaa"|replace(old="a", new="c")
"h\u00e9"|replace("", "-") ~ "ab".replace("", "-", 2)
"a"|replace("a")
"a".replace("a")
"a".replace(old="a", new="b")
"121"|replace(1, 3)
"  a  b\u3000c ".split()|tojson
"  a  b c ".split(none, 1)|tojson
"a,b,c".split(",", 1)|tojson
"a,b,c".split(sep=",", maxsplit=1)|tojson
"a,b,c".split(",", maxsplit=-1)|tojson
"".split()|tojson ~ "".split(",")|tojson
"a".split("")
"a".split(",", 1, 2)
"abc".startswith("ab") ~ "abc".endswith("bc") ~ "abc".startswith("")
"abc".startswith()
",".join(["a", "b"]) ~ ",".join("abc")
",".join([1, 2])
",".join()
[1, "a", none, true, 2.5]|join
[1, 2]|join(", ") ~ [1, 2]|join(d="+") ~ [1, 2]|join(0)
mapping|join(",")
[1, 2]|join(",", "a", "b")
mapping.get("a") ~ mapping.get("z") ~ mapping.get("z", 5)
mapping.get("z", default=5)
mapping.get()
mapping.items(1)
mapping.keys()|list|tojson ~ mapping.values()|list|tojson ~ mapping|items|list|tojson
missing|items|list|tojson
mapping.title ~ mapping.count ~ "|"
"abc".foo ~ "|" ~ "abc"["foo"] ~ none.foo ~ "|"
mapping|tojson
mapping|tojson(indent=2)
mapping|tojson(indent=0) ~ []|tojson(indent=3) ~ {}|tojson(indent=3)
mapping|tojson(indent=-1)
mapping|tojson(indent=none)
mapping|tojson(true)
mapping|tojson(ensure_ascii=true, indent=1)
mapping|tojson(separators=(",", ":"))
mapping|tojson(separators=[",", ":"], indent=1)
mapping|tojson(false, none, ("; ", "="), true)
mapping|tojson(sort_keys=true)
mapping|tojson(separators=(",",))
mapping|tojson(separators=1)
mapping|tojson(colour=1)
mapping|tojson(indent=1, indent=2)
mapping|tojson(1, 2, 3, 4, 5)
missing|tojson
odd_text|tojson
odd_text|tojson(ensure_ascii=true)
floats|tojson
floats[0] ~ " " ~ floats[1] ~ " " ~ floats[2] ~ " " ~ floats[3] ~ " " ~ floats[4] ~ " " ~ floats[5]
1.0 ~ " " ~ 7 / 2 ~ " " ~ 1 / 3 ~ " " ~ 100000.0 ~ " " ~ 10000000000000000.0 ~ " " ~ 0.0001 ~ " " ~ 0.00001
"12"|int ~ " 12 "|int ~ "+5"|int ~ "-5"|int ~ "3.9"|int ~ "x"|int ~ "x"|int(7) ~ "x"|int(default=8) ~ 3.9|int ~ -3.9|int
true|int ~ none|int ~ [1]|int(9) ~ 9007199254740993|int ~ "nan"|int(3)
"1e3"|int ~ "inf"|length
missing|int
(1e999)|int
"ab"|length ~ "h\u00e9\U0001f600"|count ~ mapping|length ~ missing|length
3|length
none|length
[3, 1, 2]|first ~ [3, 1, 2]|last ~ "abc"|first ~ mapping|last
[]|first ~ "|" ~ missing|first
[1]|first(2)
missing|default ~ "|" ~ missing|default("d") ~ ""|default("d") ~ ""|default("d", true) ~ none|default("d") ~ none|d("d", boolean=true)
missing|default("a", true, 3)
missing|trim ~ "|" ~ missing|upper ~ "|" ~ 12|trim ~ 12|string|length
"abc"|list|tojson ~ missing|list|tojson
3|list
1 is number ~ true is number ~ 1.5 is number ~ "1" is number ~ true is integer ~ 1 is integer ~ true is boolean ~ 1 is boolean
missing is iterable ~ missing is sequence ~ missing is mapping ~ missing is string ~ missing is none ~ none is none ~ none is defined
"a" is iterable ~ 3 is iterable ~ mapping is iterable ~ mapping is sequence ~ [] is sequence ~ 3 is sequence ~ none is iterable
3 is odd ~ -3 is odd ~ -2 is even ~ 1 is true ~ true is true ~ false is false
[true == 1, false == 0, true == 2, 1 == 1.0, "1" == 1, none == false, [true, 1] == [1, 1.0], missing == "", missing == missing, missing != none]|tojson
[mapping == {"b": [1, 2.5, "\u00e9\n"], "a": none}, {"x": 1, "y": 2} == {"y": 2.0, "x": true}, {"x": 1} == {"x": 1, "y": 1}, [] == {}, [1] == [1, 2]]|tojson
[9007199254740993 == 9007199254740992, 9007199254740992 < 9007199254740993, 2 > 1.5, "a" < "b", "\u00e9" > "z", 2 <= 2, 3 >= 4]|tojson
[1 in [true], "a" in mapping, "b" in "abc", none in [none], 1 in (1, 2), "" in "", "x" not in ("a",), missing in ["a"]]|tojson
"a" in 3
3 in "abc"
-1|string
-"3"|int
[-2.5|int, 2 - -1, - 3 + 1, +4, -2 * -3, 2 - 3|int]|tojson
+"a"
-mapping.n|int
[not missing|length, -1 is odd, not 1 is odd]|tojson
-7 // 2 ~ " " ~ 7 // -2 ~ " " ~ -7 % 3 ~ " " ~ 7 % -3 ~ " " ~ 7.5 // 2 ~ " " ~ -7.5 % 2 ~ " " ~ 2 * 3.0
"a" ~ 1 ~ 2.0 ~ none ~ true ~ missing ~ "b"
"a" + "b" ~ ([1] + [2, 3])|tojson ~ "ab" * 1 if false else "n"
"a" + 1
"abcdef"[1:4] ~ "abcdef"[::-1] ~ "abcdef"[-2:] ~ [1, 2, 3][:-1]|tojson ~ "abc"[5:] ~ "abc"[10] ~ "|" ~ [1][-2]
() | list | tojson ~ (1) ~ (1, 2)|list|tojson ~ ("a",)[0]
range(3)|list|tojson ~ range(1, 7, 2)|list|tojson ~ range(3, 0, -1)|list|tojson ~ range(0)|list|tojson
range()
range(1, 2, 3, 4)
range(stop=3)
range(1, 2, 0)
raise_exception("no " ~ 1)
raise_exception()
raise_exception("a", "b")
namespace(a=1).a ~ namespace().b ~ "|"
namespace(_a=1)
strftime_now()
[1 < 2 < 3, 1 < 3 < 2, 1 <= 1 == 1, "a" if 1 < 2 else 3]|tojson
not true or true ~ "|" ~ (missing or "x") ~ ("" or 0) ~ ("a" and "b") ~ (0 and 1)
"a" if missing ~ "|"
"a" if missing else "b" if true else "c"
["a", "b"][true|int] ~ mapping["b"][0] ~ mapping.b[2] ~ mapping["z"] ~ "|"
missing.x
missing["x"]
missing[0]
mapping.z.y
"\x41\u00e9\n\t\\\'\"\q"|tojson
"\0\7\12\1018 \U0001F600 \x7f"|tojson
"\U00110000"
"\N{DEGREE SIGN"
"\x4"
'it''s' "two"
{"a": 1, "a": 2}|tojson ~ {}|length ~ {"k": (1, 2)}|tojson
[1, 2,]|tojson ~ {"a": 1,}|tojson
mapping.update({"a": 1})
""".strip().split("\n")
# Blocks, written whole.
STATEMENTS = [
    "{% for a, b in mapping.items() %}{{ a }}{{ loop.depth }}{{ loop.depth0 }}{% if not loop.last %};{% endif %}{% endfor %}",
    "{% for x in [1, 2, 3] %}{{ loop.previtem }}{{ x }}{{ loop.nextitem }}|{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% if missing %}a{% elif mapping %}b{% else %}c{% endif %}{% if missing is defined %}d{% endif %}",
    "{% for i in range(5) if i % 2 == 0 %}{{ loop.index }}:{{ i }}/{{ loop.length }} {% else %}none{% endfor %}",
    "{% for i in missing %}{{ i }}{% else %}none{% endfor %}{% for c in 'h\u00e9' %}[{{ c }}]{% endfor %}",
    "{% break %}",
    "a{% for i in [1] %}{% endfor %}{% continue %}b",
    "{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% if i == 3 %}{% break %}{% endif %}{% endfor %}",
    "{% set ns = namespace() %}{% set ns._x = 1 %}",
    "{% set m = {'a': 1} %}{% set m.a = 2 %}{{ m.a }}",
    "  {%- set t -%}  in  {%- endset -%}  [{{ t }}]",
    "{% for role in ('user', 'assistant') %}{{ role[0] }}{{ role[1:] | upper }}{{ '' if loop.last else ', ' }}{% endfor %}",
    "{%- for m in [{'role': 'user', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'image'}]}, {'role': 'tool', 'content': 'b'}] %}"
    "{%- if m.content is string %}{{ m.content }}{%- else %}{%- for c in m.content %}{%- if c.type == 'text' %}{{ c.text }}{%- elif 'image' in c.type %}<image>{%- endif %}{%- endfor %}{%- endif %}{% endfor %}",
    "{%- set content = '<think>\\nwhy\\n</think>\\n\\nso' %}{%- if '</think>' in content %}{{ content.split('</think>')[0].split('<think>')[-1].strip('\\n') }}|{{ content.split('</think>')|last|trim }}{%- endif %}",
    "{%- for tool in [{'type': 'function', 'function': {'name': 'f', 'parameters': {'type': 'object', 'properties': {'x': {'type': ['string', 'null'], 'enum': ['a', '\u00e9']}}}}}] %}{{- tool | tojson }}\n{{ tool.function | tojson(indent=4) }}"
    "{%- for name, p in tool.function.parameters.properties.items() %}{{ name }}: {{ p.type if p.type is string else p.type | join(' | ') }}{{ ' = ' ~ p.default if p.default is defined }}{%- endfor %}{%- endfor %}",
    "{{ (messages | default([])) | length }}{% if tools is defined and tools is not none and tools | length > 0 %}t{% endif %}{{ '' -}}  \n  x",
]
# Macros, filters of lists, and what is refused only where it runs.
STATEMENTS += [
    "{% macro f(a, b='x', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(1, c=3) }}{{ f(b=1, a=2) }}{{ f() }}",
    "{% macro f() %}a{% endmacro %}{{ f(1) }}",
    "{% macro f(a) %}a{% endmacro %}{{ f(b=1) }}",
    "{% macro f(a) %}a{% endmacro %}{{ f(1, a=2) }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% set x = 1 %}{% macro f() %}{{ x }}{{ y }}{% endmacro %}{% for y in [1, 2] %}{% set x = 5 %}{{ f() }}{% endfor %}{% set x = 7 %}{{ f() }}",
    "{% macro f(a) %}{% for i in a %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}{% endmacro %}{% for a in [[1, 2], [3]] %}{{ f(a) }};{% endfor %}",
    "{%- macro f(x) -%}\n  {%- if x is mapping %}m{% else %}  o  {% endif -%}\n{%- endmacro -%}\n<{{ f({}) }}{{ f(1) }}{{ f({}) | upper }}{{ f(1)|length }}>",
    "{% set t = f %}{% macro f() %}a{% endmacro %}{{ f is defined }}{{ t is defined }}{{ g is defined }}",
    "{% set messages = [1, 2, 3] %}{% for i in range(3) %}{% set messages = messages[1:] %}{{ messages|length }}{% endfor %}{{ messages|length }}",
    "{% if false %}{{ x|unknown }}{{ x.unknown() }}{{ unknown(1) }}{{ x is unknown }}{{ [1]|join(',', attribute='a') }}{% endif %}a",
    "{{ unknown(1) }}",
    "{{ strftime_now is defined }}{{ raise_exception is defined }}{{ range is defined }}{{ namespace is not defined }}{{ strftime is defined }}",
    "{% if strftime_now is defined and strftime_now('%Y')|length == 4 %}year{% endif %}",
    "{% for k, v in mapping|dictsort %}{{ k }}{% endfor %}{% for k, v in {'b': 1, 'A': 2, 'a': 3}|dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for k, v in {'b': 1, 'A': 2}|dictsort(true) %}{{ k }}{% endfor %}{% for k, v in {'b': 1, 'A': 2}|dictsort(by='value', reverse=true) %}{{ k }}{% endfor %}",
]
LIST = "[{'r': 'u', 'c': 'x', 'n': 2}, {'r': 'a', 'c': 'y', 'n': 1}, {'r': 'u', 'c': 'z', 'f': {'g': 3}}]"
EXPRESSIONS += [LIST + e for e in [
    "|selectattr('r', 'equalto', 'u')|map(attribute='c')|join(',')", "|rejectattr('r', 'equalto', 'u')|list|length",
    "|selectattr('n')|list|length", "|selectattr('n', 'defined')|list|length", "|rejectattr('n', 'defined')|map(attribute='c')|list",
    "|selectattr('r', 'in', ['a', 'b'])|list|length", "|selectattr('f.g', 'eq', 3)|list|length", "|map(attribute='f.g')|list|length",
    "|map(attribute='n', default=0)|list", "|map(attribute='n', default=0)|sort|join", "|selectattr('n', 'undefined')|list",
    "|map(attribute='r')|unique|list", "|map(attribute='r')|unique|join(', ')", "|map(attribute='c')|map('upper')|list",
    "|sort(attribute='c', reverse=true)|map(attribute='c')|list", "|sort(attribute='r')|map(attribute='c')|list", "|sort",
    "|selectattr('r', 'unknown')|list", "|map('unknown')|list"]]
EXPRESSIONS += [
    "none|selectattr('r', 'equalto', 'u')|list", "none|map('upper')|list", "none|select|list", "[3, 1, 2]|sort", "[3, 1, 2]|sort(reverse=true)", "['b', 'A', 'a']|sort", "['b', 'A', 'a']|sort(case_sensitive=true)", "[1, 'a']|sort",
    "['a', 'A', 'b', 'a']|unique|list", "['a', 'A']|unique(case_sensitive=true)|list", "[1, 2, 3, 4]|select('odd')|list",
    "[1, 2, 3, 4]|reject('even')|list", "[0, 1, '', 'a', none]|select|list", "[0, 1, '', 'a', none]|reject|list",
    "[1, 2, 3]|select('gt', 1)|list", "[1, 2, 3, 4]|select('divisibleby', 2)|list", "['a', 1]|select('string')|list",
    "['a ', ' b']|map('trim')|list", "['a-b', 'c-d']|map('replace', '-', '+')|join(' ')", "[[1, 2], [3]]|map('length')|list",
    "[[1, 2], [3]]|map('first')|list", "[{'a': 1}]|map('tojson')|join", "[1, 2]|map('string')|join('-')", "'abc'|map('upper')|join",
    "[1, 2, 3]|reverse|list", "'h\u00e9'|reverse", "[2, 3, 1]|min", "[2, 3, 1]|max", "[]|max", "['b', 'a']|min",
    "'a\\nb\\n\\nc'|indent", "'a\\nb\\n\\nc'|indent(2, true)", "'a\\nb\\n\\nc'|indent(width=2, blank=true)", "'a\\nb'|indent('> ')",
    "'1.5'|float", "'x'|float", "'x'|float(2.5)", "3|float", "'a<b'|safe", "5|safe",
    "[1, 'a', none, true, 2.5, {'k': [\"it's\"]}, 'say \"x\"', 'both \\' and \"', '\\n\\t\\\\\u00e9']", "{}", "[]", "{'a': {'b': 1}}",
    "{'a': 1}|string", "[1]|upper", "'x' ~ [1, 2]", "[[1], [2]]|join(',')",
    "1 is equalto 1", "1 is eq(2)", "1 is in [1, 2]", "3 is not in [1, 2]", "'a' is in 'abc'", "4 is divisibleby 2", "4 is divisibleby(3)",
    "2 is gt 1", "2 is lt(1)", "2 is ge 2", "2 is le 1", "2 is ne 3", "1.0 is float", "1 is float", "1 is sameas 1", "missing is in [1]",
    "'{} and {}'.format(1, 'b')", "'{0}{1}{0}'.format('a', 2)", "'{{{}}}'.format(1)", "'{}'.format()", "'{'.format(1)", "'}'.format(1)", "'a'.format()",
    "'a,b,c'.rsplit(',', 1)", "'a,b,c'.rsplit(',')", "'a\\nb\\n'.splitlines()", "''.splitlines()", "'h\u00e9llo'.find('l')", "'a'.find('b')",
    "'banana'.count('an')", "'h\u00e9'.count('')", "'abc'.removeprefix('a')", "'abc'.removesuffix('bc')", "'abc'.removeprefix('b')", "[1].append(2)",
    "{'a': 1}.pop('a')",
]
VARIABLES = {"mapping": {"b": [1, 2.5, "\u00e9\n"], "a": None}, "odd_text": "\x00\x08\x0c\x1f\x7f\u2028\"\\/\U0001f600",
             "floats": [1e16, 123456789012345680.0, 1e-5, 0.0001, 1e15, -0.0, 1e22, 5e-324, 1.7976931348623157e308]}
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
    expressions = []
    for template in ["{{ " + e + " }}" for e in EXPRESSIONS] + STATEMENTS:
        one = {"template": template}
        try:
            one["text"] = _compile_jinja_template(template).render(**VARIABLES)
        except Exception:
            one["text"] = None  # jinja2, or Python, refuses it
        expressions.append(one)
    out = {"versions": {"transformers": transformers.__version__, "jinja2": jinja2.__version__}, "templates": TEMPLATES, "cases": cases, "variables": VARIABLES, "expressions": expressions}
    with open(os.path.join(sys.argv[1], "text/goldens/chat_templates.json"), "w", encoding="utf-8") as file:
        json.dump(out, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
