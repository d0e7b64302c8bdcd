#!/usr/bin/env python3
"""Cases for tests/json/document_json_test.cpp: lines of loose JSON, and what Python makes of them.

  tools/golden/make_document_json.py [COUNT [SEED]] > tests/json/goldens/document_json.txt

The reference is Megatron's tools/preprocess_data.py: strict UTF-8, json.loads, data[key] for the keys "text" and "k", each a
string or a list of strings, encoded to UTF-8 as a tokenizer would. Output, one case a line, fields separated by a tab: the
line in base64; then "ok", the texts of "text" and those of "k" (base64, separated by commas, each followed by one); or the
fault. Needs only the standard library; the committed file was made with Python 3.11.
"""
import base64, json, random, sys

FIXED = [
    b'{"text":"a","k":"b"}', b'{"text":"","k":[]}', b'{"text":[],"k":["",""]}', b'{"text":["a","b"],"k":"c"}', b' \t{ "text" : "a" , "k" : [ "b" , "c" ] } \t',
    b'{"k":"1","text":"first","text":"last"}', b'{"text":null,"text":"ok","k":""}', b'{"text":"ok","text":null,"k":""}', b'{"text":["a"],"text":[],"k":""}',
    b'{"text":"\\ud800","text":"fine","k":""}', b'{"k":"","\\u0074ext":"escaped key"}', b'{"text":"a","\\u0074e\\u0078t":"b","k":"c"}', b'{"k":{"text":"inner"},"text":"outer"}',
    b'{"x":{"text":"inner","k":"i"},"text":"outer","k":"o"}', b'{"text":"x","k":"y","n":[NaN,Infinity,-Infinity,1e999,-0,0.5,1E+5,123456789012345678901234567890]}',
    b'{"text":"x","k":"y","n":-NaN}', b'{"text":"x","k":"y","n":01}', b'{"text":"x","k":"y","n":1.}', b'{"text":"x","k":"y","n":.5}', b'{"text":"x","k":"y","n":1e}',
    b'{"text":"x","k":"y","n":-}', b'{"text":"x","k":"y","n":+1}', b'{"text":"x","k":"y","n":nan}', b'{"text":"x","k":"y","n":True}', b'{"text":"x","k":"y","n":nul}',
    b'{"text":"\\"\\\\\\/\\b\\f\\n\\r\\t","k":"\\u0000\\u001f\\u007f"}', b'{"text":"\\u00e9\\u4e2d\\ud83d\\ude00","k":"\\uD83D\\uDE00"}', b'{"text":"\\ud83d","k":""}',
    b'{"text":"\\ude00\\ud83d","k":""}', b'{"text":"\\ud83d\\ud83d\\ude00","k":""}', b'{"text":"\\ud83dx","k":""}', b'{"text":"","k":["a","\\udfff"]}', b'{"text":"","k":"","x":"\\ud800"}',
    b'{"\\ud800":1,"text":"","k":""}', b'{"text":"\\x","k":""}', b'{"text":"\\u12","k":""}', b'{"text":"\\u12g4","k":""}', b'{"text":"\\u 123","k":""}', b'{"text":"\\u+123","k":""}',
    b'{"text":"\\ud83d\\u12","k":""}', b'{"text":"\\ud83d\\', b'{"text":"\\', b'{"text":"\\u', b'{"text":"abc', b'{"text', b'{', b'{"text"', b'{"text":', b'{"text":"a"', b'{"text":"a",', b'{"text":["a"',
    b'{"text":["a",', b'[', b'"', b'', b' ', b'{}', b'[]', b'[1]', b'"text"', b'7', b'null', b'true', b'NaN', b'-Infinity', b'["text"]', b'["text","k"]',
    b'{"text":"a","k":"b"} x', b'{"text":"a","k":"b"}{"text":"a","k":"b"}', b'{"text":"a","k":"b"},', b'7 7', b'{"text":"a","k":"b",}', b'{"text":["a",],"k":""}', b'{,}', b'[,]', b'{"text" "a"}',
    b'{"text":"a" "k":"b"}', b'{"text":["a" "b"],"k":""}', b'{text:"a"}', b"{'text':'a'}", b'{"text":\'a\'}', b'{"text":"a","k":"b"]', b'[1}', b'{"text":7,"k":""}', b'{"text":true,"k":""}',
    b'{"text":false,"k":""}', b'{"text":{},"k":""}', b'{"text":{"a":"b"},"k":""}', b'{"text":["a",1],"k":""}', b'{"text":["a",null,"b"],"k":""}', b'{"text":[["a"]],"k":""}', b'{"text":[{}],"k":""}',
    b'{"text":["a",[],["b",["c"]],"d"],"k":""}', b'{"text":"x"}', b'{"k":"x"}', b'{"Text":"x","k":"y"}', b'{"text ":"x","k":"y"}', b'{"":"x","text":"t","k":""}', b'{"text":"raw\x01","k":""}', b'{"text":"raw\x1f","k":""}',
    b'{"text":"raw\ttab","k":""}', b'{"text":"del\x7f","k":""}', b'{"text":"nul\x00","k":""}', b'{"te\x02xt":"x","text":"y","k":""}', b'\x00', b'{"text":"a","k":"b"}\x00', b'{"text":"a",\x0b"k":"b"}', b'{"text":"a",\xc2\xa0"k":"b"}',
    b'{"text":"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80","k":"\xef\xbf\xbf"}', b'{"text":"\xc3","k":""}', b'{"text":"\xc0\x80","k":""}', b'{"text":"\xed\xa0\x80","k":""}', b'{"text":"\xf4\x90\x80\x80","k":""}', b'{"text":"\xff","k":""}',
    b'\xff{"text":"a","k":""}', b'{"text":"a","k":""}\x80', b'\xef\xbb\xbf{"text":"a","k":""}', b'\xef\xbb\xbf', b'\xef\xbb{"text":"a"}', b' \xef\xbb\xbf{"text":"a","k":""}', b'{"text":"\xef\xbb\xbfinside","k":""}',
    b'not json', b'tru', b'nul', b'--1', b'-', b'0', b'00', b'-0', b'-01', b'1e5', b'1.5e-3', b'{"text":"0123456789abcde","k":"0123456789abcdef"}', b'{"text":"0123456789abcdef\\n0123456789abcdef0","k":"0123456789abcdef\\u00e9"}',
    b'{"a":[[[[{"b":[{"text":"deep"}]}]]]],"text":"t","k":"k"}', b'{"text":"t","k":"k","x":' + b'[' * 900 + b']' * 900 + b'}', b'{"text":"t","k":"k","x":' + b'[' * 2000 + b']' * 2000 + b'}', b'{"text":"t","k":"k","x":' + b'{"a":' * 2000 + b'1' + b'}' * 2001,
]
PIECES = [b'"', b'\\', b'{', b'}', b'[', b']', b':', b',', b' ', b'\t', b'\x01', b'\\u', b'\\ud83d', b'\\ude00', b'\\n', b'\\"', b'\\u0041', b'null', b'1', b'-', b'.', b'e', b'NaN', b'"text"', b'"k"', b'"text":',
          b'\xc3\xa9', b'\xc3', b'\xe4\xb8\xad', b'\xf0\x9f\x98\x80', b'\xed\xa0\x80', b'\xef\xbb\xbf', b'x', b'0', b'["a"]', b'{"text":"q"}', b'\x00', b'/', b'true']


def mutate(rng, line):
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(line))
        end = min(len(line), at + rng.choice([0, 0, 1, 1, 2, 5]))
        line = line[:at] + (rng.choice(PIECES) if rng.random() < 0.7 else b'') + line[end:]
    return line.replace(b'\n', b' ').replace(b'\r', b' ')


CHARACTERS = ['a', 'longer run of text ', '\\n', '\\"', '\\\\', '\\/', '\\u00e9', '\\u4e2d', '\\ud83d\\ude00', 'é', '中', '😀', '\x7f', '\u2028', "'", '{', ']', ',']


def string(rng):
    text = ''.join(rng.choices(CHARACTERS, k=rng.randint(0, 6)))
    return '"' + text + (rng.choice(['\\ud800', '\\udc00']) if rng.random() < 0.03 else '') + '"'


def value(rng, depth=0):
    kind = rng.random()
    if kind < 0.5 or depth > 3:
        return string(rng)
    if kind < 0.75:
        return '[' + blanks(rng) + ','.join(string(rng) if rng.random() < 0.95 else value(rng, depth + 1) for _ in range(rng.randint(0, 3))) + ']'
    if kind < 0.85:
        return rng.choice(['0', '-1', '12.5e-3', 'NaN', '-Infinity', 'true', 'false', 'null', '1E400', '9' * 30])
    return thing(rng, ['text', 'k', 'x'], depth + 1)


def blanks(rng):
    return rng.choice(['', '', '', ' ', '\t '])


def thing(rng, keys, depth=0):
    members = []
    for key in keys:
        name = '"' + ''.join(c if rng.random() < 0.9 else '\\u%04x' % ord(c) for c in key) + '"'
        members.append(blanks(rng) + name + blanks(rng) + ':' + blanks(rng) + value(rng, depth) + blanks(rng))
    return '{' + ','.join(members) + '}'


def structured(rng):
    keys = ['text', 'k'] + rng.choices(['x', 'text', 'k', 'Text', '', 'é'], k=rng.randint(0, 2))
    rng.shuffle(keys)
    return (blanks(rng) + thing(rng, keys) + blanks(rng)).encode()


def judge(line):
    try:
        data = json.loads(line.decode('utf-8'))
    except UnicodeDecodeError:
        return 'invalid UTF-8'
    except RecursionError:
        return 'nested too deeply'
    except json.JSONDecodeError as e:
        for part, fault in (('Unexpected UTF-8 BOM', 'byte order mark inside the input'), ('Invalid control character', 'raw control character in a string'),
                            ('Extra data', 'text after the JSON value')):
            if e.msg.startswith(part):
                return fault
        return 'malformed JSON'
    if not isinstance(data, dict):
        return 'not a JSON object'
    texts = []
    for key in ('text', 'k'):
        if key not in data:
            return 'missing key'
        value = data[key] if isinstance(data[key], list) else [data[key]]
        if not all(isinstance(x, str) for x in value):
            return 'value is not text'
        try:
            texts.append(''.join(base64.b64encode(x.encode('utf-8')).decode() + ',' for x in value))
        except UnicodeEncodeError:
            return 'lone surrogate'
    return 'ok\t' + '\t'.join(texts)


def main():
    count, seed = (int(sys.argv[1]) if len(sys.argv) > 1 else 550), (int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    rng = random.Random(seed)
    short = [x for x in FIXED if len(x) < 200]
    for line in FIXED + [mutate(rng, rng.choice(short)) for _ in range(count // 2)] + [structured(rng) for _ in range(count // 2)]:
        print(base64.b64encode(line).decode() + '\t' + judge(line))


main()
