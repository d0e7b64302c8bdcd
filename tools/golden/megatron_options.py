#!/usr/bin/env python3
"""Writes tests/dialects/megatron/goldens/megatron_options.json: the options of Megatron-LM's pretrain_gpt.py with their defaults.

  tools/golden/megatron_options.py arguments.py > tests/dialects/megatron/goldens/megatron_options.json
arguments.py: megatron/training/arguments.py of Megatron-LM at tag core_v0.12.0 (d580efc68a9f). It is read, not run.
Groups for other models (BERT, T5, RETRO, vision, retrieval) and for inference are left out.
"""
import ast, json, sys

OTHERS = ('biencoder', 'vision', 'retro', 'inference', 'mlp', 'transformer_engine', 'experimental', 'heterogeneous', 'moe', 'mla')
tree = ast.parse(open(sys.argv[1]).read())
options = []
for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
    if any(word in function.name for word in OTHERS):
        continue
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or getattr(call.func, 'attr', '') != 'add_argument':
            continue
        keywords = {k.arg: k.value for k in call.keywords}
        literal = lambda name: keywords[name].value if isinstance(keywords.get(name), ast.Constant) else None
        names = [a.value[2:] for a in call.args if isinstance(a, ast.Constant) and a.value.startswith('--')]
        action = literal('action')
        values = 'none' if action in ('store_true', 'store_false') else 'several' if literal('nargs') in ('*', '+') else 'one'
        for name in names:
            options.append({'option': name, 'values': values, 'default': literal('default') if values == 'one' else None})
print('[\n ' + ',\n '.join(json.dumps(o) for o in sorted(options, key=lambda o: o['option'])) + '\n]')
