#!/usr/bin/env python3
"""Holds megalith-convert's outputs against the programs that read them, on small models of the repository.

    BUILD=build/release python tools/peers/compare_convert.py

transformers: every weight is taken and none is missing, logits equal, pipeline("text-generation") and
device_map="auto" give the same text, and so does megalith-generate of a Megatron file that was converted in place, as in
CodeParrot's tutorial. megatron-core: GPTModel (local layers) takes the .pt file with
load_state_dict(strict=True), written with Transformer Engine's names and with its own, and computes the same logits.
Round trips through Megatron (at every cut), Megalith and back are byte-identical. llama.cpp, where llama_cpp is
installed: of F32 the same tokens greedily; of F16, BF16 and Q8_0 near logits (it rounds activations too); every
tensor of Q8_0 is what its own quantizer makes of F32.
"""
import contextlib, functools, json, os, shutil, sys, tempfile, warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
warnings.filterwarnings("ignore")
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch  # noqa: E402
import transformers  # noqa: E402

import programs  # noqa: E402
from programs import convert, say  # noqa: E402

transformers.utils.logging.disable_progress_bar()
GOLDENS = os.path.join(programs.HERE, "..", "..", "tests", "convert", "goldens")
PROMPT, NEW = 6, 8  # tokens; the models have 16 and 20 positions
FAR = 1e-5  # of logits around 1, computed in fp32 with sums in another order


def tokens_of(vocabulary):
    return torch.randint(0, vocabulary, (1, PROMPT), generator=torch.Generator().manual_seed(3))


def transformers_logits(model, tokens):
    with torch.no_grad():
        return model(tokens).logits


def check_transformers(name, folder, want):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    say(not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), f"{name}: every weight has its place")
    tokens = tokens_of(model.config.vocab_size)
    say(torch.equal(transformers_logits(model.eval(), tokens), want), f"{name}: logits equal")
    spread = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map="auto").eval()
    say(torch.equal(transformers_logits(spread, tokens), want), f"{name}: logits equal with device_map=auto")
    if not os.path.exists(f"{folder}/tokenizer.json"):
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [transformers.pipeline("text-generation", folder, tokenizer=tokenizer, **more)("def f(x):", max_new_tokens=NEW, do_sample=False)[0]["generated_text"]
             for more in ({}, {"device_map": "auto"})]
    say(texts[0] == texts[1] and texts[0].startswith("def f"), f"{name}: pipeline, also with device_map=auto: {texts[0]!r}")


def check_code_parrot(source, work):
    """As the tutorial goes: Megatron's file alone in its folder, vocab.json and merges.txt in the working folder, and then
    pipeline() of that folder."""
    convert(source, "--to", "megatron", "--output", f"{work}/megatron")
    os.makedirs(f"{work}/tutorial/X")
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(f"{source}/{file}", f"{work}/tutorial")
    shutil.copy(f"{work}/megatron/release/mp_rank_00/model_optim_rng.pt", f"{work}/tutorial/X")
    done = programs.run("megalith-convert", "X/model_optim_rng.pt", cwd=f"{work}/tutorial")
    if done.returncode:
        return say(False, f"CodeParrot's file: {done.stderr}")
    complete = transformers.pipeline("text-generation", model=f"{work}/tutorial/X")
    theirs = complete("def f(x):", max_new_tokens=NEW, do_sample=False)[0]["generated_text"]
    ours = programs.run("megalith-generate", "--model", f"{work}/tutorial/X", "--prompt", "def f(x):", "--max-new-tokens", NEW, "--temperature", 0).stdout
    say(ours.rstrip("\n") == theirs.rstrip("\n"), f"CodeParrot's file: pipeline gives megalith-generate's text: {theirs!r}")


def start_megatron():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK="0", WORLD_SIZE="1")
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import CudaRNGStatesTracker
    torch.cuda.current_device = lambda: "cpu"  # it asks for the device even where it computes on the CPU
    CudaRNGStatesTracker.fork = lambda self, name=None: contextlib.nullcontext()  # dropout is off
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)


def megatron_model(args):
    """GPTModel as Megatron's own arguments in the file describe it."""
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig

    gelu = functools.partial(torch.nn.functional.gelu, approximate="tanh") if args.bias_gelu_fusion or args.openai_gelu else torch.nn.functional.gelu
    config = TransformerConfig(
        num_layers=args.num_layers, hidden_size=args.hidden_size, ffn_hidden_size=args.ffn_hidden_size,
        num_attention_heads=args.num_attention_heads, kv_channels=args.kv_channels,
        num_query_groups=args.num_query_groups if args.group_query_attention else args.num_attention_heads,
        normalization=args.normalization, layernorm_epsilon=args.norm_epsilon, gated_linear_unit=args.swiglu,
        activation_func=torch.nn.functional.silu if args.swiglu else gelu, add_bias_linear=args.add_bias_linear,
        add_qkv_bias=args.add_qkv_bias, qk_layernorm=args.qk_layernorm, hidden_dropout=0.0, attention_dropout=0.0, use_cpu_initialization=True,
        bias_activation_fusion=False, bias_dropout_fusion=False, masked_softmax_fusion=False, apply_rope_fusion=False,
        attention_softmax_in_fp32=True, rotary_interleaved=args.rotary_interleaved, no_rope_freq=args.no_rope_freq)
    return GPTModel(
        config, get_gpt_layer_local_spec(qk_layernorm=args.qk_layernorm, normalization=args.normalization), vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings, position_embedding_type=args.position_embedding_type,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights, rotary_base=args.rotary_base,
        rotary_percent=args.rotary_percent).eval()


def local_names(weights):
    """Transformer Engine keeps norms in the linear layer after them, and asks for a state of its own."""
    renamed = {}
    for name, value in weights.items():
        if name.endswith("._extra_state"):
            continue
        for engine, local in (("self_attention.linear_qkv.layer_norm_", "input_layernorm."), ("mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm.")):
            name = name.replace(engine, local)
        renamed[name] = value
    return renamed


def check_megatron(name, folder, want, engine):
    torch.serialization.add_safe_globals([__import__("argparse").Namespace])
    saved = torch.load(f"{folder}/release/mp_rank_00/model_optim_rng.pt", weights_only=True)
    model = megatron_model(saved["args"])
    weights = local_names(saved["model"]) if engine else saved["model"]
    try:
        model.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        return say(False, f"{name}: {error}")
    say(True, f"{name}: megatron-core loads it strictly")
    tokens = tokens_of(want.shape[-1])
    positions = torch.arange(tokens.shape[1])[None]
    mask = torch.ones(1, 1, tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)  # true: hidden
    with torch.no_grad():
        got = model(tokens, positions, mask)[..., :want.shape[-1]]
    far = (got - want).abs().max().item()
    say(far <= FAR, f"{name}: megatron-core's logits differ by {far:.1e}")


def same_weights(a, b):
    files = [sorted(file for file in os.listdir(folder) if file.endswith(".safetensors")) for folder in (a, b)]
    return files[0] == files[1] and all(open(f"{a}/{file}", "rb").read() == open(f"{b}/{file}", "rb").read() for file in files[0])


def check_round_trips(name, source, work, layers, groups, vocabulary):
    convert(source, "--output", f"{work}/straight")
    for tensor in (n for n in (1, 2, 3) if groups % n == 0):
        for pipeline in (n for n in (1, 2, 3) if layers % n == 0):
            cut = f"{work}/cut-{tensor}-{pipeline}"
            convert(source, "--to", "megatron", "--tp", tensor, "--pp", pipeline, "--output", cut)
            convert(cut, "--vocab-size", vocabulary, "--output", cut + "-back")
            say(same_weights(f"{work}/straight", cut + "-back"), f"{name}: Megatron at {tensor} x {pipeline} and back")
    convert(source, "--to", "megalith", "--output", f"{work}/ours")
    convert(f"{work}/ours", "--output", f"{work}/ours-back")
    say(same_weights(f"{work}/straight", f"{work}/ours-back"), f"{name}: Megalith and back")


def check_llama_cpp(name, source, work, model):
    try:
        import llama_cpp
    except ImportError:
        return print("skip", f"{name}: llama_cpp is not installed")
    tokens = tokens_of(model.config.vocab_size)[0].tolist()
    want = transformers_logits(model, torch.tensor([tokens]))[0, -1]
    greedy = model.generate(torch.tensor([tokens]), max_new_tokens=NEW, do_sample=False, pad_token_id=0, eos_token_id=None)[0].tolist()
    for kind in ("fp32", "fp16", "bf16", "q8_0"):
        path = f"{work}/{kind}.gguf"
        convert(source, "--to", "gguf", "--dtype", kind, "--output", path)
        theirs = llama_cpp.Llama(path, n_ctx=PROMPT + NEW + 1, logits_all=True, verbose=False)
        theirs.eval(tokens)
        got = torch.tensor(theirs.scores[len(tokens) - 1].copy())
        theirs.reset()
        text = list(tokens)
        theirs.eval(text)
        for _ in range(NEW):
            text.append(int(theirs.scores[len(text) - 1].argmax()))
            theirs.eval([text[-1]])
        far = (got - want).abs().max().item()
        limit = {"fp32": 1e-3, "fp16": 1e-2, "bf16": 5e-2, "q8_0": 5e-2}[kind] * want.abs().max().item()
        same = sum(a == b for a, b in zip(text[len(tokens):], greedy[len(tokens):]))
        say(far <= limit and (kind != "fp32" or same == NEW), f"{name}: llama.cpp of {kind}: {same} of {NEW} greedy tokens equal, logits differ by {far:.1e} of {want.abs().max():.2f}")


def wide_model(family, source, folder):
    """The same kind of model with rows of whole blocks of Q8_0, and numbers of every size."""
    config = transformers.AutoConfig.from_pretrained(source)
    config.update({"n_embd": 64, "n_inner": 160, "n_head": 4} if family == "gpt2" else {
        "hidden_size": 64, "intermediate_size": 160, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32})
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(torch.exp2(torch.randint(-6, 3, parameter.shape[:-1] + (1,))))
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    model.save_pretrained(folder)


def check_quantization(name, source, work):
    """Every tensor of our Q8_0 is what llama.cpp itself makes of our F32."""
    try:
        import ctypes
        import gguf
        import llama_cpp
    except ImportError:
        return print("skip", f"{name}: llama_cpp or gguf is not installed")
    for kind in ("fp32", "q8_0"):
        convert(source, "--to", "gguf", "--dtype", kind, "--output", f"{work}/{kind}.gguf", "--overwrite")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.nthread = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0, 1
    if llama_cpp.llama_model_quantize(f"{work}/fp32.gguf".encode(), f"{work}/theirs.gguf".encode(), ctypes.byref(params)):
        return say(False, f"{name}: llama.cpp does not quantize our F32")
    ours, theirs = ({t.name: (t.tensor_type, t.data.tobytes()) for t in gguf.GGUFReader(f"{work}/{file}.gguf").tensors} for file in ("q8_0", "theirs"))
    say(ours == theirs, f"{name}: the {len(ours)} tensors of q8_0 are llama.cpp's own, byte for byte")


def main():
    start_megatron()
    for family in ("gpt2", "llama", "families/qwen3", "families/smollm3", "families/starcoder2", "families/stablelm"):
        source = os.path.join(GOLDENS, family)
        config = json.load(open(f"{source}/config.json"))
        layers = config.get("n_layer") or config["num_hidden_layers"]
        groups = config.get("num_key_value_heads") or config.get("n_head")
        with tempfile.TemporaryDirectory() as work:
            model = transformers.AutoModelForCausalLM.from_pretrained(source).eval()
            want = transformers_logits(model, tokens_of(model.config.vocab_size))
            if family == "gpt2":
                check_code_parrot(source, work)
            convert(source, "--output", f"{work}/hf")
            check_transformers(family, f"{work}/hf", want)
            for impl in ("local", "transformer_engine"):
                convert(source, "--to", "megatron", "--transformer-impl", impl, "--output", f"{work}/{impl}")
                check_megatron(f"{family}, {impl}", f"{work}/{impl}", want, impl == "transformer_engine")
            check_round_trips(family, source, work, layers, groups, model.config.vocab_size)
            if family in ("gpt2", "llama", "families/qwen3"):  # the others are not written for llama.cpp
                check_llama_cpp(family, source, work, model)
                wide_model(family, source, f"{work}/wide")
                check_quantization(family, f"{work}/wide", work)
    return programs.finish()


if __name__ == "__main__":
    sys.exit(main())
