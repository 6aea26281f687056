# SPDX-License-Identifier: Apache-2.0
"""Which architectures of transformers there are, by family, and what is special about each."""

from __future__ import annotations

from typing import Any

#: Family -> what its models read (`example_inputs.READERS`), and their names.
FAMILIES: dict[str, tuple[str, str]] = {
    "text encoder": (
        "text",
        "albert bert bert-generation big_bird camembert canine convbert data2vec-text deberta deberta-v2 "
        "distilbert electra ernie esm eurobert flaubert fnet funnel gte ibert jina_embeddings_v3 layoutlm "
        "lilt longformer luke markuplm megatron-bert mobilebert modernbert mpnet mra nomic_bert "
        "nystromformer rembert roberta roberta-prelayernorm roc_bert roformer splinter squeezebert tapas xlm "
        "xlm-roberta xlm-roberta-xl xlnet xmod yoso",
    ),
    "text decoder": (
        "text",
        "apertus arcee biogpt bitnet bloom codegen cohere cohere2 ctrl cwm diffllama exaone4 falcon "
        "gemma gemma2 gemma3_text gemma3n_text glm glm4 gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese "
        "gptj granite helium hunyuan_v1_dense internlm3 jais2 llama ministral mistral minicpm3 "
        "modernbert-decoder nanochat nemotron olmo olmo2 olmo3 openai-gpt opt persimmon phi phi3 qwen2 qwen3 "
        "reformer seed_oss smollm3 stablelm starcoder2 vaultgemma xglm",
    ),
    "mixture of experts": (
        "text",
        "afmoe dbrx deepseek_v2 deepseek_v3 dots1 ernie4_5_moe flex_olmo glm4_moe gpt_oss granitemoe "
        "granitemoeshared hunyuan_v1_moe jetmoe llama4_text longcat_flash minimax minimax_m2 mixtral olmoe "
        "phimoe qwen2_moe qwen3_moe solar_open",
    ),
    "state-space model": (
        "text",
        "bamba falcon_h1 falcon_mamba granitemoehybrid jamba lfm2 lfm2_moe mamba mamba2 nemotron_h "
        "olmo_hybrid qwen3_next recurrent_gemma rwkv xlstm zamba2",
    ),
    "encoder-decoder": (
        "text_to_text",
        "bart bigbird_pegasus blenderbot blenderbot-small fsmt longt5 m2m_100 marian mbart mt5 mvp nllb-moe "
        "pegasus pegasus_x plbart prophetnet switch_transformers t5 t5gemma umt5",
    ),
    "vision": (
        "image",
        "beit bit convnext convnextv2 cvt data2vec-vision deit dinov2 dinov2_with_registers "
        "dinov3_convnext dinov3_vit donut-swin efficientnet focalnet glpn hgnet_v2 hiera ijepa imagegpt "
        "levit mgp-str mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2 poolformer pvt pvt_v2 regnet resnet "
        "segformer siglip_vision_model swiftformer swin swin2sr swinv2 textnet upernet vit vit_mae vit_msn "
        "vitdet vitpose_backbone",
    ),
    "segmentation, detection, depth": (
        "image",
        "conditional_detr d_fine dab-detr deformable_detr depth_anything detr dpt mask2former maskformer "
        "rt_detr rt_detr_v2 sam seggpt table-transformer yolos superpoint",
    ),
    "video": ("video", "timesformer videomae vivit vjepa2"),
    "audio": (
        "wave",
        "audio-spectrogram-transformer dac data2vec-audio encodec hubert mimi moonshine parakeet_encoder "
        "sew sew-d speech_to_text unispeech unispeech-sat univnet vits wav2vec2 wav2vec2-bert "
        "wav2vec2-conformer wavlm whisper",
    ),
    "multimodal": (
        "image_and_text",
        "align altclip blip blip-2 bridgetower chinese_clip clip clipseg flava git groupvit "
        "internvl layoutlmv3 llava lxmert owlv2 owlvit paligemma "
        "siglip vilt vipllava visual_bert",
    ),
    "time series": ("text", "patchtsmixer patchtst"),
}

_WHOLE_HEADS = {"config": {"num_key_value_heads": 4}}
_HEAD_DIM = {"config": {"head_dim": 8}}
_RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 8, 16, 16],
    "depths": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}
_LAST_STAGE = {**_RESNET, "out_features": ["stage4"]}
_DEPTH = {
    "backbone_config": {
        "model_type": "dinov2",
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "image_size": 64,
        "patch_size": 16,
        "out_features": ["stage1", "stage2", "stage3", "stage4"],
        "reshape_hidden_states": False,
    },
    "patch_size": 16,
    "reassemble_hidden_size": 32,
    "neck_hidden_sizes": [8, 8, 16, 16],
    "fusion_hidden_size": 8,
    "head_hidden_size": 8,
}
_DETR = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone_config": _LAST_STAGE,
    "num_queries": 6,
}

#: Name -> arguments of `transformers.Row`.
ROWS: dict[str, dict[str, Any]] = {
    # text
    "codegen": {"config": {"rotary_dim": 4}},
    "esm": {"config": {"vocab_size": 128, "pad_token_id": 1, "mask_token_id": 3}},
    "funnel": {
        "config": {"num_hidden_layers": None, "block_sizes": [1, 1], "block_repeats": [1, 1], "d_inner": 64}
    },
    "gemma3n_text": {
        "config": {
            "num_hidden_layers": 4,
            "num_kv_shared_layers": 2,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "intermediate_size": [64] * 4,
            "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 128,
            "laurel_rank": 8,
        }
    },
    "gptj": {"config": {"rotary_dim": 4}},
    "hunyuan_v1_dense": _HEAD_DIM,
    "hunyuan_v1_moe": _HEAD_DIM,
    "lilt": {"config": {"hidden_size": 48, "intermediate_size": 96}},
    "ministral": _HEAD_DIM,
    "minicpm3": _WHOLE_HEADS,
    "nemotron": {"config": {"num_key_value_heads": 2}},
    "prophetnet": {"config": {"num_hidden_layers": None}},
    "reformer": {
        "config": {
            "axial_pos_shape": [4, 8],
            "axial_pos_embds_dim": [16, 16],
            "attention_head_size": 8,
            "attn_layers": ["local", "lsh"],
            "num_hidden_layers": None,
            "num_buckets": 2,
            "local_attn_chunk_length": 4,
            "lsh_attn_chunk_length": 4,
        }
    },
    "xmod": {"config": {"default_language": "en_XX"}},
    # mixture of experts
    "dbrx": {"config": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}}},
    "deepseek_v2": {
        "config": {"num_key_value_heads": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
    },
    "deepseek_v3": _WHOLE_HEADS,
    "dots1": {"config": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2}},
    "longcat_flash": _WHOLE_HEADS,
    # state spaces
    "bamba": {"config": {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 16}},
    "granitemoehybrid": {"config": {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 16}},
    "mamba2": {"config": {"num_heads": 8, "head_dim": 8, "state_size": 16, "n_groups": 2}},
    "zamba2": {
        "config": {
            "mamba_headdim": 8,
            "n_mamba_heads": 8,
            "num_mem_blocks": 1,
            "mamba_d_state": 16,
            "attention_hidden_size": 64,
            "attention_head_dim": 16,
        }
    },
    # vision
    "depth_anything": {"auto": "AutoModelForDepthEstimation", "config": _DEPTH},
    "efficientnet": {
        "config": {
            "width_coefficient": 0.25,
            "hidden_dim": 320,
            "depth_coefficient": 0.5,
            "initializer_range": 0.3,
        }
    },
    "imagegpt": {"reads": "text"},
    # with the usual range the result of so many layers vanishes
    **dict.fromkeys(("mobilevit", "mobilevitv2"), {"config": {"initializer_range": 0.2}}),
    "vit_mae": {"inputs": {"noise": (1, 16)}},
    "superpoint": {"auto": "AutoModelForKeypointDetection"},
    "upernet": {
        "auto": "AutoModelForSemanticSegmentation",
        "config": {"backbone_config": {**_RESNET, "out_features": ["stage1", "stage2", "stage3", "stage4"]}},
    },
    "vitpose_backbone": {"auto": "AutoBackbone"},
    "conditional_detr": {"config": _DETR},
    "dab-detr": {"config": _DETR},
    "detr": {"config": _DETR},
    "table-transformer": {"config": _DETR},
    "deformable_detr": {
        "config": {**_DETR, "backbone_config": _RESNET},
        "inputs": {"pixel_values": (1, 3, 128, 128)},
    },
    # wide weights: proposals are chosen by scores, which must not be equal
    **{
        name: {"config": {"num_queries": 6, "num_denoising": 0, "initializer_range": width}}
        for name, width in (("d_fine", 0.1), ("rt_detr", 0.3), ("rt_detr_v2", 0.3))
    },
    "sam": {
        "config": {
            "vision_config": {"output_channels": 256},
            "prompt_encoder_config": {"hidden_size": 256, "image_size": 64, "image_embedding_size": 4},
            "mask_decoder_config": {"hidden_size": 256, "num_attention_heads": 8},
        },
        "inputs": {"input_points": (1, 1, 1, 2), "input_labels": [[[1]]]},
    },
    "seggpt": {
        "config": {"image_size": [128, 64], "merge_index": 0, "intermediate_hidden_state_indices": [0, 1]},
        "inputs": {
            "pixel_values": (1, 3, 64, 64),
            "prompt_pixel_values": (1, 3, 64, 64),
            "prompt_masks": (1, 3, 64, 64),
        },
    },
    "vjepa2": {
        "inputs": {"pixel_values_videos": (1, 4, 3, 64, 64)},
        "config": {"crop_size": 64, "frames_per_clip": 4},
    },
    **dict.fromkeys(("swin", "donut-swin"), {"config": {"window_size": 2}}),
    **dict.fromkeys(("patchtsmixer", "patchtst"), {"inputs": {"past_values": (1, 32, 1)}}),
    # sound
    "audio-spectrogram-transformer": {
        "reads": "patched_frames",
        "config": {"max_length": 64, "frequency_stride": 8, "time_stride": 8, "patch_size": 8},
    },
    "speech_to_text": {"reads": "frames_to_text"},
    "wav2vec2-bert": {"reads": "frames"},
    "parakeet_encoder": {"reads": "frames"},
    "whisper": {"reads": "speech_to_text"},
    "moonshine": {"reads": "wave_to_text"},
    "encodec": {"reads": "wave_channel"},
    "dac": {"reads": "wave_channel"},
    "mimi": {"reads": "wave_channel", "config": {"hidden_size": 512}},
    "univnet": {"inputs": {"input_features": (1, 16, 16), "noise_sequence": (1, 16, 64)}},
    "vits": {"reads": "text", "config": {"vocab_size": 128}},
    # several senses
    "align": {
        "config": {
            "projection_dim": 80,
            "text_config": {"hidden_size": 80},
            "vision_config": {"width_coefficient": 0.25, "hidden_dim": 80, "depth_coefficient": 0.5},
        }
    },
    "lfm2_moe": {"config": {"num_dense_layers": 1, "layer_types": ["conv", "full_attention"]}},
    "blip-2": {"image_tokens": 8, "config": {"num_query_tokens": 8, "image_token_id": 120}},
    "internvl": {"image_tokens": 4},
    "layoutlmv3": {
        "config": {"coordinate_size": 4, "shape_size": 8, "input_size": 64},
        "inputs": {"pixel_values": (1, 3, 64, 64)},
    },
    "llava": {"image_tokens": 16},
    "paligemma": {"image_tokens": 16},
    "vipllava": {"image_tokens": 16, "config": {"vision_feature_layers": [-2, -1]}},
    "lxmert": {"inputs": {"visual_feats": (1, 4, 2048), "visual_pos": (1, 4, 4)}},
    "bridgetower": {
        "config": {
            "hidden_size": 64,
            "vision_config": {"hidden_size": 64},
            "text_config": {"hidden_size": 64},
        }
    },
}
