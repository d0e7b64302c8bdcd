#!/usr/bin/env python3
"""Makes tests/convert/goldens/megatron: tiny checkpoints in every form that Megatron-LM ever wrote.

    python tools/golden/make_megatron.py tests/convert/goldens/megatron [qwen3]

With the word qwen3, makes only its two. Made with torch 2.15.0, megatron-core 0.16.1. The weights are numbers that a test can
compute (value() below), laid out as each version laid them out:

v0/ v1/             checkpoint_version 0 (fp16, TP 2) and 1.0, oldest names
v0_stream/          a release without args, in torch's stream format of before 1.6
v2_pp/              2.0, TP 2 x PP 2, tied head with its copy on the last stage, bf16
virtual/            3.0, PP 2, two chunks a stage, 4 layers, newer norm names
te_legacy/          3.0, the TransformerEngine flavour of the legacy names, --apply-layernorm-1p
mcore_local/        mcore names, one tensor a storage, optimizer state beside the model
mcore_te/           mcore names of the TransformerEngine spec, GQA + SwiGLU, TP 2, untied, bf16
interleaved/        mcore, SwiGLU, --rotary-interleaved, tied
qwen2/ mistral/     mcore with --add-qkv-bias; with --window-size
qwen3/ qwen3_dist/  mcore with --qk-layernorm: TP 2; torch_dist by megatron-core
llama3/             mcore with --use-rope-scaling
dist/ dist_layers/  torch_dist by megatron-core: stacked layers; a key a layer
hf_bin/             pytorch_model.bin in two files with their index
"""
import argparse
import io
import json
import os
import shutil
import sys

import torch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def value(name, shape):
    """Whole numbers from -90 to 90, exact in every type; another sequence for each name."""
    n = 1
    for extent in shape:
        n *= extent
    start = sum(name.encode())
    return ((torch.arange(n) * 7 + start) % 181 - 90).reshape(shape).float()


class Model:
    """Parameters under mcore's names, whole: QKV by groups, SwiGLU [gates; ups], vocabulary padded with -99."""

    def __init__(self, **a):
        self.a = argparse.Namespace(**a)
        a = self.a
        h, f, hn, ng = a.hidden_size, a.ffn_hidden_size, a.kv_channels, a.groups
        qkv = (a.num_attention_heads + 2 * ng) * hn
        self.w = {}
        def put(name, *shape):
            self.w[name] = value(name, shape)
        def norm(name, width=h):
            put(name + ".weight", width)
            if a.normalization == "LayerNorm":
                put(name + ".bias", width)
        def linear(name, rows, columns, bias):
            put(name + ".weight", rows, columns)
            if bias:
                put(name + ".bias", rows)
        put("embedding.word_embeddings.weight", a.vocab, h)
        if a.position_embedding_type == "learned_absolute":
            put("embedding.position_embeddings.weight", a.max_position_embeddings, h)
        for i in range(a.num_layers):
            p = f"decoder.layers.{i}."
            norm(p + "input_layernorm")
            linear(p + "self_attention.linear_qkv", qkv, h, a.add_bias_linear or a.add_qkv_bias)
            if a.qk_layernorm:
                norm(p + "self_attention.q_layernorm", hn)
                norm(p + "self_attention.k_layernorm", hn)
            linear(p + "self_attention.linear_proj", h, a.num_attention_heads * hn, a.add_bias_linear)
            norm(p + "pre_mlp_layernorm")
            linear(p + "mlp.linear_fc1", f * (2 if a.swiglu else 1), h, a.add_bias_linear)
            linear(p + "mlp.linear_fc2", h, f, a.add_bias_linear)
        norm("decoder.final_layernorm")
        if a.untie:
            put("output_layer.weight", a.vocab, h)
        for name in ("embedding.word_embeddings.weight", "output_layer.weight"):
            if name in self.w:
                padding = torch.full((a.padded - a.vocab, h), -99.0)
                self.w[name] = torch.cat([self.w[name], padding])

    def shard(self, name, t, size):
        """The share of tensor-parallel rank t."""
        w, a = self.w[name], self.a
        if "linear_fc1" in name and a.swiglu:
            gate, up = w.chunk(2)
            return torch.cat([gate.chunk(size)[t], up.chunk(size)[t]])
        if name.endswith(("word_embeddings.weight", "output_layer.weight")) or "linear_qkv" in name or "linear_fc1" in name:
            return w.chunk(size)[t]
        if name.endswith(("linear_proj.weight", "linear_fc2.weight")):
            return w.chunk(size, dim=1)[t]
        return w


def reordered(w, a, order, interleaved):
    """Rows of a rank's fused QKV, from [groups, heads of the group, head] to a version's order."""
    hn, per = a.kv_channels, a.num_attention_heads // a.groups + 2
    x = w.reshape(-1, per, hn, *w.shape[1:])
    if interleaved:  # halves to pairs: old[2j] = new[j], old[2j + 1] = new[hn/2 + j]
        x = x.clone()
        qk = x[:, : per - 1]
        x[:, : per - 1] = torch.stack([qk[:, :, : hn // 2], qk[:, :, hn // 2 :]], 3).reshape(qk.shape)
    if order == "kind":  # version 0: [3, np, hn]
        x = x.transpose(0, 1)
    elif order == "element":  # version 1: [np, hn, 3]
        x = x.transpose(1, 2)
    return x.reshape(w.shape).contiguous()


LEGACY = {"self_attention.linear_qkv": "self_attention.query_key_value", "self_attention.linear_proj": "self_attention.dense",
          "mlp.linear_fc1": "mlp.dense_h_to_4h", "mlp.linear_fc2": "mlp.dense_4h_to_h",
          "pre_mlp_layernorm": "post_attention_layernorm"}
NEWER = {**LEGACY, "input_layernorm": "input_norm", "pre_mlp_layernorm": "post_attention_norm", "final_layernorm": "final_norm"}
OLDEST = {**LEGACY, "self_attention.linear_qkv": "attention.query_key_value", "self_attention.linear_proj": "attention.dense"}
TE_LEGACY = {"input_layernorm.": "self_attention.layernorm_qkv.layer_norm_", "self_attention.linear_qkv": "self_attention.layernorm_qkv",
             "self_attention.linear_proj": "self_attention.proj", "pre_mlp_layernorm.": "layernorm_mlp.layer_norm_",
             "mlp.linear_fc1.": "layernorm_mlp.fc1_", "mlp.linear_fc2.": "layernorm_mlp.fc2_"}
TE = {"input_layernorm.": "self_attention.linear_qkv.layer_norm_", "pre_mlp_layernorm.": "mlp.linear_fc1.layer_norm_"}


def renamed(name, names):
    for ours, theirs in names.items():
        name = name.replace(ours, theirs)
    return name


def nested(flat, oldest):
    """The legacy tree: {"language_model": {"embedding": …, "encoder": {flat keys}}}."""
    model = {}
    for name, w in flat.items():
        if name.startswith("embedding."):
            _, table, _ = name.split(".")
            model.setdefault("embedding", {})[table] = {"weight": w}
        elif name.startswith("output_layer."):
            model["output_layer"] = {"weight": w}
        else:
            model.setdefault("transformer" if oldest else "encoder", {})[name.removeprefix("decoder.")] = w
    return {"language_model": model}


def one_storage(flat, dtype):
    """All tensors as views of one storage, so that the file is small."""
    whole = torch.cat([w.reshape(-1).to(dtype) for w in flat.values()])
    out, at = {}, 0
    for name, w in flat.items():
        out[name] = whole[at : at + w.numel()].view(w.shape)
        at += w.numel()
    return out


def namespace(model, version, tp, pp, dtype, extra):
    from megatron.core.enums import ModelType
    a = vars(model.a).copy()
    groups, vocab, padded, untie = (a.pop(k) for k in ("groups", "vocab", "padded", "untie"))
    return argparse.Namespace(**a, group_query_attention=groups != a["num_attention_heads"], num_query_groups=groups,
                              untie_embeddings_and_output_weights=untie, padded_vocab_size=padded, vocab_size=None,
                              make_vocab_size_divisible_by=4, norm_epsilon=1e-5, tensor_model_parallel_size=tp,
                              pipeline_model_parallel_size=pp, params_dtype=DTYPES[dtype], model_type=ModelType.encoder_or_decoder,
                              squared_relu=False, num_experts=None, big=2**70, iteration=5, **extra)


def save(root, model, *, names, version=3.0, tp=1, pp=1, chunks=1, dtype="fp32", args=True, legacy=False, order="group",
         interleaved=False, stream=False, apart=False, less_one=False, extra=None):
    per = model.a.num_layers // (pp * chunks)
    for p in range(pp):
        for t in range(tp):
            state = {}
            for c in range(chunks):
                first = (c * pp + p) * per
                flat = {}
                for name in model.w:
                    layer = int(name.split(".")[2]) if name.startswith("decoder.layers.") else None
                    if layer is None:
                        stage = 0 if name.startswith("embedding.") else pp * chunks - 1
                        if stage != c * pp + p:
                            continue
                    elif not first <= layer < first + per:
                        continue
                    w = model.shard(name, t, tp)
                    if "linear_qkv" in name:
                        w = reordered(w, model.a, order, interleaved)
                    if less_one and "layernorm.weight" in name:
                        w = w - 1
                    local = name if layer is None else name.replace(f"layers.{layer}.", f"layers.{layer - first}.")
                    flat[local] = w
                last = c * pp + p == pp * chunks - 1
                copy = model.shard("embedding.word_embeddings.weight", t, tp) if last and pp > 1 and not model.a.untie else None
                if copy is not None:
                    flat["output_layer.weight"] = copy
                flat = {k: v.to(DTYPES[dtype]) for k, v in flat.items()} if apart else one_storage(flat, DTYPES[dtype])
                flat = {renamed(k, names): v for k, v in flat.items()}
                if legacy:
                    head = flat.pop("output_layer.weight") if copy is not None else None
                    tree = nested(flat, names is OLDEST)
                    if head is not None:
                        tree["word_embeddings_for_head"] = {"weight": head}
                else:
                    tree = flat
                    tree["decoder.layers.0.self_attention.linear_qkv._extra_state"] = io.BytesIO(b"scale")
                    tree["decoder.layers.0.mlp.linear_fc1._extra_state"] = torch.empty(0, dtype=torch.uint8)
                    tree["decoder.layers.0.mlp.linear_fc2._extra_state"] = None
                    tree["rotary_pos_emb.inv_freq"] = torch.ones(2)
                state["model" if chunks == 1 else f"model{c}"] = tree
            state["iteration"] = 5
            if args:
                state["args"] = namespace(model, version, tp, pp, dtype, extra or {})
            if apart:
                state["optimizer"] = {"state": {0: {"exp_avg": torch.zeros(8), "step": 5}}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.95)}]}
                state["rng_state"] = [{"random_rng_state": (3, (1, 2, 3), None), "cuda_rng_state": torch.zeros(4, dtype=torch.uint8)}]
            if version is not None:
                state["checkpoint_version"] = version
            folder = f"{root}/{'iter_0000005' if args else 'release'}/mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 else "")
            os.makedirs(folder, exist_ok=True)
            torch.save(state, folder + "/model_optim_rng.pt", _use_new_zipfile_serialization=not stream)
    with open(f"{root}/latest_checkpointed_iteration.txt", "w") as f:
        f.write("5" if args else "release")


def save_dist(root, model, stacked):
    """By megatron-core's own writer, the weights in ShardedTensors as a model would give them."""
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor
    folder = f"{root}/iter_0000005"
    os.makedirs(folder, exist_ok=True)
    state = {"args": namespace(model, 3.0, 1, 1, "fp32", {}), "checkpoint_version": 3.0, "iteration": 5}
    layers = model.a.num_layers
    for name, w in model.w.items():
        key = renamed(name, TE)
        if not name.startswith("decoder.layers."):
            state[name] = ShardedTensor.from_rank_offsets(key, w)
            continue
        layer = int(name.split(".")[2])
        at = (0, layer, layers) if stacked else None
        key = key.replace(f"layers.{layer}.", "layers.") if stacked else key
        parts = w.chunk(2) if "linear_fc1" in name and model.a.swiglu else [w]
        for i, part in enumerate(parts):
            offsets = [at] if at else []
            if len(parts) > 1:
                offsets.append((1 if stacked else 0, i, 2))
            state[f"{name}/{i}"] = ShardedTensor.from_rank_offsets(key, part.contiguous(), *offsets, prepend_axis_num=1 if stacked else 0)
    state["extra"] = ShardedObject("decoder.layers.self_attention.linear_qkv._extra_state", io.BytesIO(b"x"), (1,), (0,))
    dist_checkpointing.save(state, folder)
    with open(f"{root}/latest_checkpointed_iteration.txt", "w") as f:
        f.write("5")


def save_hf(root, model):
    """GPT-2 as transformers' save_pretrained(safe_serialization=False) wrote it, in two files."""
    a = model.a
    os.makedirs(root)
    sd = {}
    for name, w in model.w.items():
        theirs = renamed(name, {"embedding.word_embeddings": "transformer.wte", "embedding.position_embeddings": "transformer.wpe",
                                "decoder.layers": "transformer.h", "decoder.final_layernorm": "transformer.ln_f",
                                "input_layernorm": "ln_1", "pre_mlp_layernorm": "ln_2", "self_attention.linear_qkv": "attn.c_attn",
                                "self_attention.linear_proj": "attn.c_proj", "mlp.linear_fc1": "mlp.c_fc", "mlp.linear_fc2": "mlp.c_proj"})
        if "c_attn" in theirs:
            w = reordered(w, a, "kind", False)
        if w.dim() == 2 and ".h." in theirs:
            w = w.t().contiguous()
        sd[theirs] = w[: a.vocab] if "wte" in theirs else w
    names = list(sd)
    for i, part in enumerate((names[:10], names[10:])):
        torch.save(one_storage({k: sd[k] for k in part}, torch.float32), f"{root}/pytorch_model-0000{i + 1}-of-00002.bin")
    weight_map = {k: f"pytorch_model-0000{1 + (i >= 10)}-of-00002.bin" for i, k in enumerate(names)}
    json.dump({"metadata": {"total_size": 0}, "weight_map": weight_map}, open(f"{root}/pytorch_model.bin.index.json", "w"))
    json.dump({"model_type": "gpt2", "n_layer": a.num_layers, "n_embd": a.hidden_size, "n_head": a.num_attention_heads,
               "n_inner": a.ffn_hidden_size, "n_positions": a.max_position_embeddings, "vocab_size": a.vocab}, open(f"{root}/config.json", "w"))


def gpt2(layers=2):
    return Model(num_layers=layers, hidden_size=8, ffn_hidden_size=12, num_attention_heads=4, kv_channels=2, groups=4, vocab=6, padded=8,
                 max_position_embeddings=4, seq_length=4, position_embedding_type="learned_absolute", normalization="LayerNorm",
                 swiglu=False, add_bias_linear=True, add_qkv_bias=False, qk_layernorm=False, untie=False, bias_gelu_fusion=False, openai_gelu=True)


def llama(**a):
    return Model(**{**dict(num_layers=2, hidden_size=8, ffn_hidden_size=6, num_attention_heads=4, kv_channels=4, groups=2, vocab=6,
                           padded=8, max_position_embeddings=16, seq_length=8, position_embedding_type="rope", rotary_base=5000,
                           normalization="RMSNorm", swiglu=True, add_bias_linear=False, add_qkv_bias=False, qk_layernorm=False,
                           untie=True, bias_gelu_fusion=False, openai_gelu=False), **a})


def main_forms(out):
    """All but those of Qwen3 and of torch_dist."""
    save(f"{out}/v0", gpt2(), names=OLDEST, version=None, tp=2, legacy=True, order="kind", dtype="fp16")
    save(f"{out}/v0_stream", gpt2(), names=OLDEST, version=None, legacy=True, order="kind", args=False, stream=True)
    save(f"{out}/v1", gpt2(1), names=OLDEST, version=1.0, legacy=True, order="element")
    save(f"{out}/v2_pp", gpt2(), names=LEGACY, version=2.0, tp=2, pp=2, legacy=True, dtype="bf16")
    save(f"{out}/virtual", gpt2(4), names=NEWER, pp=2, chunks=2, legacy=True)
    save(f"{out}/te_legacy", gpt2(1), names=TE_LEGACY, legacy=True, less_one=True, extra={"apply_layernorm_1p": True})
    save(f"{out}/mcore_local", gpt2(1), names={}, apart=True)
    save(f"{out}/mcore_te", llama(), names=TE, tp=2, dtype="bf16")
    save(f"{out}/interleaved", llama(num_layers=1, untie=False), names=TE, interleaved=True, extra={"rotary_interleaved": True})
    save(f"{out}/qwen2", llama(num_layers=1, add_qkv_bias=True), names=TE)
    save(f"{out}/mistral", llama(num_layers=1), names=TE, extra={"window_size": (8, 0)})
    save(f"{out}/llama3", llama(num_layers=1), names=TE, extra={"use_rope_scaling": True, "rope_scaling_factor": 8.0})
    save_hf(f"{out}/hf_bin", gpt2(1))


def main(out, *only):
    if not only:
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        main_forms(out)
    save(f"{out}/qwen3", llama(qk_layernorm=True), names=TE, tp=2)
    torch.cuda.synchronize = torch.cuda.current_device = lambda *_: "cpu"  # megatron-core asks them on a machine without GPUs too
    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29581", rank=0, world_size=1)
    save_dist(f"{out}/qwen3_dist", llama(qk_layernorm=True), True)
    if not only:
        save_dist(f"{out}/dist", llama(), True)
        save_dist(f"{out}/dist_layers", llama(num_layers=1), False)


if __name__ == "__main__":
    main(*sys.argv[1:])
