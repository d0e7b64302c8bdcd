#pragma once

namespace megalith::test {

/// The config.json of a model of LLaMA-3 8B's shape.
inline constexpr const char* kLlama8BConfig =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false,
        "rope_theta": 500000.0})";

}  // namespace megalith::test
