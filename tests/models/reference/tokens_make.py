"""Reference tokens: small tokenizers, texts, their token numbers and the texts of these, by the programs that define the formats.

``python tests/models/reference/tokens_make.py`` writes ``tokens_cases.json``. It needs gguf, sentencepiece with protobuf,
tokenizers, and xllamacpp, a build of llama.cpp that exports its C functions. The tests need none of these but tokenizers.

Where llama.cpp and sentencepiece both read a model, the script stops unless they agree. Where two programs are known to differ,
"differences" has what both say, the one that counts first (docs/models.md); "kinds" is what llama.cpp takes tokens for.
"""

import ctypes
import importlib.metadata
import io
import itertools
import json
import random
import tempfile
from pathlib import Path

import gguf
import sentencepiece
import tokenizers
import xllamacpp
from sentencepiece import sentencepiece_model_pb2 as proto

FILE = Path(__file__).with_name("tokens_cases.json")
PACKAGES = ("gguf", "sentencepiece", "tokenizers", "xllamacpp")
NORMAL, UNKNOWN, CONTROL, OWN, UNUSED, BYTE = range(1, 7)
BYTES = [f"<0x{b:02X}>" for b in range(256)]
BITS = {UNKNOWN: 1, UNUSED: 2, NORMAL: 4, CONTROL: 8, OWN: 16, BYTE: 32}  # of llama.cpp's kinds
ENDS = (
    *("<|eot_id|>", "<|im_end|>", "<|ifm|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<|eom_id|>"),
    *("<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]", "<EOT>", "_<EOT>", "[EOT]", "[e~["),
    *("<end_of_utterance>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>"),
)
MARKERS = (
    *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"),
    *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"),
    *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"),
    *("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|file_sep|>", "<|plamo:file_separator|>"),
    *("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    *("<|plamo:fim_prefix|>", "<|plamo:fim_suffix|>", "<|plamo:fim_middle|>"),
)
SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
OTHERS = ("<|custom|>", "<pad>", "<s>", "<unk>", "[unused1]", "<|im_start|>", "<|plamo:eos|>", "<|begin_of_text|>")
NAMED = ("eos", "eot", "eom", "pad", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix", "middle")
OVERLAPS = ("abc", "bcda", "cd")
PUBLISHED = {  # how the tokenizer.json of LLaMA 3 and of Qwen2 split a text
    "llama-bpe": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        None,
    ),
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        tokenizers.normalizers.NFC(),
    ),
}
PREFIX = "tokenizer.ggml."
CORPUS = [
    "the quick brown fox jumps over the lazy dog",
    "hello hello world, we'll see 12 24 48 years; don't",
    "naïve café theatre: 3.14 and 1,000 (or so)",
    "    indented\n\n\tline  two\r\n",
]
TEXTS = [
    *("", " ", "a", "hello", "hello world", " hello", "hello ", "  two  spaces  ", "12345 3.14", "DON'T we'll I'M", "\n\n \n"),
    *("a\tb\r\nc", "naïve café", "漢字 and ½", "😀👩‍👧", "\x00\x07", "z" * 60, "thethe the", "...!!?", "<s>hello</s>", "a<s> b"),
    *("x<own>y <own> z", "<unk>", "(hello)", "\u00a0\u3000"),
]


class Params(ctypes.Structure):
    """llama_model_params."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("devices", "buffers")),
        *((name, ctypes.c_int32) for name in ("layers", "split", "load", "lazy", "main")),
        *((name, ctypes.c_void_p) for name in ("cut", "progress", "data", "fields")),
        *((name, ctypes.c_bool) for name in ("vocab_only", "check", "extra", "no_host", "no_alloc", "mtp")),
    ]


SILENT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)


def opened():
    """The library's C functions."""
    library = ctypes.CDLL(str(Path(xllamacpp.__file__).with_name("xllamacpp.abi3.so")))
    flag, number, pointer, text = ctypes.c_bool, ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p
    library.llama_model_default_params.restype = Params
    for name, result, arguments in (
        ("llama_model_load_from_file", pointer, [text, Params]),
        ("llama_model_get_vocab", pointer, [pointer]),
        ("llama_vocab_get_attr", number, [pointer, number]),
        ("llama_tokenize", number, [pointer, text, number, pointer, number, flag, flag]),
        ("llama_token_to_piece", number, [pointer, number, text, number, number, flag]),
        ("llama_detokenize", number, [pointer, pointer, number, text, number, flag, flag]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(SILENT, None)
    library.llama_backend_init()
    return library


LLAMA = opened()


class Llama:
    """llama.cpp's tokenizer of these metadata."""

    def __init__(self, metadata):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/model.gguf"
            writer = gguf.GGUFWriter(file, "llama")
            for add, size in (
                ("block_count", 1),
                ("context_length", 32),
                ("embedding_length", 8),
                ("feed_forward_length", 8),
                ("head_count", 1),
                ("layer_norm_rms_eps", 1e-5),
                ("rope_dimension_count", 8),
            ):
                getattr(writer, f"add_{add}")(size)
            for name, value in metadata.items():
                kind = {bool: "bool", str: "string", int: "uint32", list: "array"}[type(value)]
                getattr(writer, f"add_{kind}")(name, value)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            params = LLAMA.llama_model_default_params()
            params.vocab_only = True
            self.model = LLAMA.llama_model_load_from_file(file.encode(), params)
        assert self.model, metadata
        self.vocabulary = LLAMA.llama_model_get_vocab(self.model)

    def encode(self, text, special):
        data = text.encode()
        ids = (ctypes.c_int32 * (len(data) + 16))()
        count = LLAMA.llama_tokenize(self.vocabulary, data, len(data), ids, len(ids), special, True)
        assert count >= 0
        return list(ids[:count])

    def decode(self, ids):
        """With control tokens; of GPT-2's kind token by token, as the whole is tidied up for some models."""
        buffer, room = ctypes.create_string_buffer(1 << 14), 1 << 14
        if not self.whole:
            count = [LLAMA.llama_token_to_piece(self.vocabulary, i, buffer, room, 0, True) for i in ids[:1]]
            return buffer.raw[: sum(count)] + (self.decode(ids[1:]) if ids else b"")
        numbers = (ctypes.c_int32 * len(ids))(*ids)
        count = LLAMA.llama_detokenize(self.vocabulary, numbers, len(ids), buffer, room, False, True)
        return buffer.raw[:count]

    def kinds(self, count):
        """Of the first tokens; a control token may have another kind, too."""
        found = [LLAMA.llama_vocab_get_attr(self.vocabulary, i) for i in range(count)]
        return [CONTROL if bits & BITS[CONTROL] else next(kind for kind, bit in BITS.items() if bits & bit) for bits in found]

    whole = True


def spoken(metadata):
    """The library sentencepiece's model of these metadata."""
    model = proto.ModelProto()
    model.trainer_spec.model_type = proto.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = BYTE in metadata[f"{PREFIX}token_type"]
    spec = model.normalizer_spec
    spec.name, spec.remove_extra_whitespaces, spec.escape_whitespaces = "identity", False, True
    spec.add_dummy_prefix = metadata.get(f"{PREFIX}add_space_prefix", True)
    for piece, score, kind in zip(*(metadata[PREFIX + name] for name in ("tokens", "scores", "token_type")), strict=True):
        model.pieces.add(piece=piece, score=score, type=kind)
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def pieces(words, scores, kinds=None, byte=True, own=(), **more):
    """Metadata of a sentencepiece model: special tokens, bytes, words."""
    special = ["<unk>", "<s>", "</s>", *own]
    tokens = [*special, *(BYTES if byte else ()), *words]
    made = {
        "model": "llama",
        "tokens": tokens,
        "scores": [0.0] * (len(tokens) - len(words)) + [float(x) for x in scores],
        "token_type": [UNKNOWN, CONTROL, CONTROL]
        + [OWN] * len(own)
        + [BYTE] * (256 * byte)
        + (list(kinds) if kinds else [NORMAL] * len(words)),
    }
    return {PREFIX + name: value for name, value in (made | more).items()}


def of_pieces(name, metadata, texts, by=("llama.cpp", "sentencepiece")):
    """Cases of a sentencepiece model."""
    theirs, other = "llama.cpp" in by and Llama(metadata), "sentencepiece" in by and spoken(metadata)
    cases = []
    for text in texts:
        if other and any(token in text for token in ("<s>", "</s>", "<unk>")):
            continue  # for sentencepiece, these are letters
        bare = theirs.encode(text, False) if theirs else other.encode(text)
        case = {"text": text, "bare": bare}
        if theirs:
            case |= {"ids": theirs.encode(text, True), "decoded": theirs.decode(bare).decode()}
        if other:
            assert other.encode(text) == bare, (name, text, bare, other.encode(text))
            decoded = other.decode(bare)
            assert not theirs or decoded == case["decoded"], (name, text, decoded, case["decoded"])
            case["decoded"] = decoded
        cases.append(case)
    return {"name": name, "by": by, "metadata": metadata, "cases": cases}


def trained(**more):
    """Words and scores of a trained sentencepiece model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 3),
        model_writer=model,
        vocab_size=360,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=3,
        **more,
    )
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    words = [i for i in range(theirs.vocab_size()) if not (theirs.is_control(i) or theirs.is_unknown(i) or theirs.is_byte(i))]
    return theirs, [theirs.id_to_piece(i) for i in words], [theirs.get_score(i) for i in words]


def tied(seed, letters="▁abcd", byte=True, **more):
    """A model of random words with few different scores; some letters have no token of their own."""
    draw = random.Random(seed)
    words = sorted({"".join(draw.choices("▁abcd", k=draw.choice([2, 2, 3, 3, 4]))) for _ in range(40)})
    words = [*draw.sample(letters, len(letters) - seed % 3), *words]
    kinds = [draw.choice([NORMAL, NORMAL, UNUSED]) if len(w) > 1 else NORMAL for w in words] if more.pop("unused", False) else None
    return pieces(words, [draw.choice([-1, -2, -2.5]) for _ in words], kinds, byte, **more)


def drawn(seed, count=14):
    """Random texts of the letters of :func:`tied`."""
    draw = random.Random(seed)
    return ["".join(draw.choices("abcd  eé", [6, 6, 6, 6, 2, 2, 1, 1], k=draw.randint(1, 40))) for _ in range(count)]


def byte_level(pre, **more):
    """Metadata of a byte-level model: trained merges, and words that no merge makes."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(CORPUS, tokenizers.trainers.BpeTrainer(vocab_size=310, initial_alphabet=alphabet, show_progress=False))
    model = json.loads(made.to_str())["model"]
    tokens = [
        *sorted(model["vocab"], key=model["vocab"].get),
        "Ġworld",
        "DON",
        "123",
        "zzzz",
        "Ċ",
        "naÃ¯ve",
        "<s>",
        "</s>",
        "<own>",
    ]
    pairs = more.pop("pairs", [])
    tokens = list(dict.fromkeys([*tokens, *more.pop("own", ()), *map("".join, pairs)]))
    merges = [" ".join(pair) for pair in [*model["merges"], *pairs]]
    fields = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "merges": merges + merges[:5],  # a pair that stands twice has its first rank
        "token_type": [{"<s>": CONTROL, "</s>": CONTROL, "<own>": OWN}.get(token, NORMAL) for token in tokens],
        "bos_token_id": tokens.index("<s>"),
        "eos_token_id": tokens.index("</s>"),
    }
    return {PREFIX + name: value for name, value in (fields | more).items()}


def of_bytes(name, metadata, texts):
    """Cases of a byte-level model."""
    theirs = Llama(metadata)
    theirs.whole = False
    cases = []
    for text in texts:
        bare = theirs.encode(text, False)
        cases.append({"text": text, "bare": bare, "ids": theirs.encode(text, True), "decoded": theirs.decode(bare).decode()})
        assert cases[-1]["decoded"] == text
    return {"name": name, "by": ["llama.cpp"], "metadata": metadata, "cases": cases}


def of_kinds():
    """Kinds of well-known tokens: each alone, and some at random with other kinds and with fields that name tokens."""
    draw, names = random.Random(0), [*ENDS, *MARKERS, *SHOWN, *OTHERS]
    alone = [[name] for name in names] + [["<|end|>", "<|call|>", other] for other in ("<|return|>", "<|flush|>")]
    alone += [["</s>", "<|tool_response>"]]
    for own in [*alone, *(draw.sample(names, draw.randint(2, 9)) for _ in range(150))]:
        tokens, drawn = ["a", "b", "ab", *own], own not in alone
        fields = {"model": "gpt2", "pre": "gpt-2", "merges": ["a b"], "tokens": tokens}
        if drawn and draw.random() < 0.8:
            fields["token_type"] = [1, 1, 1, *draw.choices([NORMAL, NORMAL, CONTROL, OWN, UNUSED, UNKNOWN], k=len(own))]
        for name in NAMED if drawn else ():
            if draw.random() < 0.12:
                fields[f"{name}_token_id"] = draw.choice([0, 3, len(tokens) - 1, 10**6])
        found = Llama({PREFIX + name: value for name, value in fields.items()}).kinds(len(tokens))
        yield {"fields": {name: fields[name] for name in fields if name not in ("model", "pre", "merges")}, "kinds": found}


def published(metadata):
    """The library tokenizers with the published rule of splitting."""
    fields = {name.removeprefix(PREFIX): value for name, value in metadata.items()}
    pattern, normalizer = PUBLISHED[fields["pre"]]
    vocabulary = {token: i for i, token in enumerate(fields["tokens"])}
    pairs = dict.fromkeys(tuple(merge.split(" ")) for merge in fields["merges"])
    model = tokenizers.models.BPE(vocabulary, list(pairs), ignore_merges=fields["pre"] == "llama-bpe")
    inner, parts = tokenizers.Tokenizer(model), tokenizers.pre_tokenizers
    if normalizer:
        inner.normalizer = normalizer
    split = parts.Split(tokenizers.Regex(pattern), "isolated")
    inner.pre_tokenizer = parts.Sequence([split, parts.ByteLevel(add_prefix_space=False, use_regex=False)])
    return inner


def of_differences():
    """Where two programs differ, what both say; the first counts."""
    texts = {"llama-bpe": ["a'ſb", "we'ſt"], "qwen2": ["a'ſb", "we'ſt", "cafe\u0301", "\u212b", "\u1100\u1161"]}
    for pre, some in texts.items():
        metadata = byte_level(pre, pairs=[("¿", "t"), ("¿", "b")])  # ſ is Å¿
        one, other = published(metadata), Llama(metadata)
        cases = [{"text": text, "numbers": [one.encode(text).ids, other.encode(text, False)]} for text in some]
        yield {"name": f"splitting of {pre}", "by": ["tokenizers", "llama.cpp"], "metadata": metadata, "cases": cases}
    metadata = tied(2, unused=True)
    one, other = spoken(metadata), Llama(metadata)
    cases = [{"text": text, "numbers": [one.encode(text), other.encode(text, False)]} for text in drawn(2)]
    cases = [case for case in cases if case["numbers"][0] != case["numbers"][1]]
    yield {"name": "unused pieces", "by": ["sentencepiece", "llama.cpp"], "metadata": metadata, "cases": cases}
    metadata = pieces(["a", "▁", "▁a"], [-1, -2, -3], own=["▁▁"])
    ids = [metadata[f"{PREFIX}tokens"].index(token) for token in ("a", "▁▁", "▁a")]
    texts = [Llama(metadata).decode(ids).decode(), spoken(metadata).decode(ids)]
    cases = [{"ids": ids, "texts": texts}]
    yield {"name": "decoding of added tokens", "by": ["llama.cpp", "sentencepiece"], "metadata": metadata, "cases": cases}


def of_unigram():
    """A tokenizer.json of a sentencepiece model of the kind "unigram"."""
    theirs, _, _ = trained(model_type="unigram", hard_vocab_limit=False)
    vocabulary = [(theirs.id_to_piece(i), theirs.get_score(i)) for i in range(theirs.vocab_size())]
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram(vocabulary, theirs.unk_id(), byte_fallback=True))
    rules, back = tokenizers.normalizers, tokenizers.decoders
    inner.normalizer = rules.Sequence([rules.Prepend("▁"), rules.Replace(" ", "▁")])
    inner.decoder = back.Sequence([back.Replace("▁", " "), back.ByteFallback(), back.Fuse(), back.Strip(" ", 1, 0)])
    texts = [text for text in TEXTS if "<" not in text]
    cases = [{"text": text, "bare": theirs.encode(text), "decoded": theirs.decode(theirs.encode(text))} for text in texts]
    return {"name": "unigram", "by": ["sentencepiece"], "file": json.loads(inner.to_str()), "cases": cases}


def cut_bytes(metadata):
    """What sentencepiece makes of byte tokens that are no whole character."""
    theirs, first = spoken(metadata), metadata[f"{PREFIX}tokens"].index(BYTES[0])
    runs = [b"\xe2\x82", b"\xc3\xa9\xc3", b"\xe2\x82\xac\xf0\x9f\x98", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"a\x80\x80b"]
    return [{"ids": [first + b for b in run], "decoded": theirs.decode([first + b for b in run])} for run in runs]


def shortened(metadata):
    """The metadata with runs of equal numbers as [number, count], and the tokens of bytes as one null."""
    short = dict(metadata)
    for name in ("scores", "token_type"):
        if PREFIX + name in short:
            short[PREFIX + name] = [[x, len(list(run))] for x, run in itertools.groupby(short[PREFIX + name])]
    tokens = short[f"{PREFIX}tokens"]
    if BYTES[0] in tokens:
        first = tokens.index(BYTES[0])
        short[f"{PREFIX}tokens"] = [*tokens[:first], None, *tokens[first + 256 :]]
    return short


def collected():
    """All tokenizers with their cases."""
    _, words, scores = trained(model_type="bpe", split_digits=True)
    plain = [text for text in TEXTS if "<own>" not in text]
    yield of_pieces("trained", pieces(words, scores), plain)
    yield of_pieces("trained, in texts with control tokens", pieces(words, scores, own=["<own>"]), TEXTS, ["llama.cpp"])
    yield of_pieces("trained, no space", pieces(words, scores, add_space_prefix=False), plain)
    yield of_pieces(
        "trained, added tokens without a space", pieces(words, scores, own=["<own>"], add_space_prefix=False), TEXTS, ["llama.cpp"]
    )
    markers, texts = (
        ["<PRE>", "<SUF>", "▁<MID>"],
        [f"a {token}b{token} ab" for token in (*ENDS[:6], "</s>", "<PRE>", "▁<MID>", " <MID>")],
    )
    yield of_pieces("well-known tokens", pieces([*ENDS[:6], *markers, *words], [-9] * 9 + scores), texts, ["llama.cpp"])
    overlapping = ["abcda", "cdabc", "xabcd", "bcdcd a", "abcdabcda", "abcd cda"]
    yield of_pieces("overlapping tokens", pieces(words, scores, own=OVERLAPS), overlapping, ["llama.cpp"])
    for bos, eos in itertools.product((True, False), repeat=2):
        around = {"add_bos_token": bos, "add_eos_token": eos, "bos_token_id": 2, "eos_token_id": 1}
        yield of_pieces(f"around: {bos}, {eos}", pieces(words[-40:], scores[-40:], **around), TEXTS[:6], ["llama.cpp"])
    for seed in range(12):
        yield of_pieces(f"ties {seed}", tied(seed), drawn(seed))
        yield of_pieces(f"ties, no space {seed}", tied(seed, add_space_prefix=False), drawn(seed, 6))
        yield of_pieces(f"unused {seed}", tied(seed, unused=True), drawn(seed), ["sentencepiece"])
        yield of_pieces(f"no bytes {seed}", tied(seed, byte=False), drawn(seed, 6), ["sentencepiece"])
    for pre in ("gpt-2", "smollm", "llama-bpe", "qwen2"):
        yield of_bytes(pre, byte_level(pre), TEXTS)
        for bos, eos in ((True, True), (False, True), (False, False)):
            made = byte_level(pre, add_bos_token=bos, add_eos_token=eos)
            yield of_bytes(f"{pre}, around: {bos}, {eos}", made, TEXTS[:5])
    plain = byte_level("smollm", own=[*ENDS, *markers])
    yield of_bytes("well-known tokens of bytes", plain, texts)
    bare = {name: value for name, value in plain.items() if name != f"{PREFIX}token_type"}
    yield of_bytes("well-known tokens without kinds", bare, texts)
    own = byte_level("llama-bpe", own=OVERLAPS, add_eos_token=True)
    own[f"{PREFIX}token_type"] = [NORMAL] * (len(own[f"{PREFIX}tokens"]) - 3) + [OWN] * 3
    yield of_bytes("overlapping tokens of bytes", own, overlapping)
    yield of_unigram()


if __name__ == "__main__":
    found = list(collected())
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    cut = {"metadata": tied(0), "cases": cut_bytes(tied(0))}
    differences, kinds = list(of_differences()), list(of_kinds())
    assert all(
        one != other for each in differences for case in each["cases"] for one, other in [case.get("numbers") or case["texts"]]
    )
    for made in (*found, cut, *differences):
        if "metadata" in made:
            made["metadata"] = shortened(made["metadata"])
    everything = {"versions": versions, "tokenizers": found, "cut": cut, "differences": differences, "kinds": kinds}
    FILE.write_text(json.dumps(everything, ensure_ascii=True) + "\n", encoding="utf-8")
    print(FILE.stat().st_size, "bytes,", sum(len(each["cases"]) for each in found), "cases", versions)
