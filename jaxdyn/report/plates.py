"""The maps of the atlas, as data: the claim, the plane, and what came out, in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["PLATES", "Plate"]


@dataclasses.dataclass(frozen=True)
class Plate:
    """A map of the atlas.

    Args:
        name: its file's and its anchor's.
        title: a few words.
        claim: the claim's id.
        over: the axes, as ``jaxdyn map --over`` takes them.
        finding: where the claim holds, where it stops, and whether that is where the theorem's assumptions say so.
        cells: the most cells.
        seeds: how many; None for the claim's own.
        sets: other fields, with their values.
    """

    name: str
    title: str
    claim: str
    over: tuple[str, ...]
    finding: str
    cells: int = 243
    seeds: int | None = None
    sets: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)


PLATES: tuple[Plate, ...] = ()
PLATES = (
    Plate(
        name="snap-commons",
        title="Scan & Snap, Theorem 2: common tokens lose",
        claim="snap.common_down_flow",
        over=("ratio=.1:1e4:log", "common=.005:.8:log"),
        finding=(
            r"Common tokens lose at every point, at learning rates $\eta_Y/\eta_Z$ (ratio) from .1 to 10,000 and weights of "
            r"the common token from .005 to .8, far beyond the assumption $K\|E\| < 1$: the overlap reaches 7.5 at the upper "
            "end. There is no border: this half of Theorem 2 needs neither a small overlap nor a fast decoder."
        ),
        cells=96,
    ),
    Plate(
        name="snap-unequal",
        title="Scan & Snap, Theorem 2 where commons are unequal",
        claim="snap.unequal_flow",
        over=("ratio=.05:1e3:log", "unequal=.1:5:log"),
        finding=(
            r"Two common tokens whose frequencies differ by $e^u$ between classes ($u$: unequal): at $\eta_Y/\eta_Z$ above 1 "
            "one of them gains for some time in more than a quarter of the runs once $u$ is above 2.4, at smaller ratios from "
            "about 1 on. Below (grey) too few runs show it to tell. The assumption of equal frequencies is what decides, and "
            "a fast decoder hides small differences."
        ),
        cells=150,
    ),
    Plate(
        name="snap-theorem3",
        title="Scan & Snap, Theorem 3: relative gains",
        claim="snap.theorem3",
        over=("ratio=.1:1e4:log", "common=.005:.8:log"),
        finding=(
            r"Theorem 3 holds in one corner, and its assumptions draw it: from $\eta_Y/\eta_Z$ = 93 on (assumed: 50; in "
            "between the mean growth is too close to 90% to tell), and up to a weight of the common token of .32, an overlap "
            "of 2.4 where 1 is assumed. The upper border is flat: a faster decoder does not help against overlap."
        ),
    ),
    Plate(
        name="snap-theorem4",
        title="Scan & Snap, Theorem 4: the law of B",
        claim="snap.B_law_flow",
        over=("ratio=1e-3:1e3:log", "odds=.002:.3:log"),
        finding=(
            r"The law of $B$ needs a fast decoder and a rare common token: for $\eta_Y/\eta_Z$ below 30 the odds that it bears "
            "grow with the ratio, .013 at ratio 1; above they stay at .05 to .06, whatever the ratio, since the overlap is "
            "left. One power law does not describe both parts, and its interval is wide. To the left it is the decoder's "
            "memory that breaks the law, above the overlap alone."
        ),
    ),
    Plate(
        name="joma-softmax",
        title="JoMA: the softmax law beside networks",
        claim="joma.softmax_invariant",
        over=("ratio=.01:100:log", "lr=.005:10:log"),
        finding=(
            "The softmax law is an approximation for a short time, and the map says how short. It holds for learning rates of "
            ".013 to .6 and ratios of the rates up to 18, less clearly (grey) at equal rates and above. At rates of 1.5 and "
            "more single steps leave the phase of nearly constant attention; at ratios of 30 and more attention itself moves "
            "first. At rates below .008 the runs end before the logits have moved: the lower edge is the length of the runs, "
            "not the theorem's."
        ),
        cells=100,
    ),
    Plate(
        name="joma-momentum",
        title="JoMA: the softmax law under momentum",
        claim="joma.softmax_invariant",
        over=("lr=.005:10:log", "momentum=0:.98"),
        finding=(
            "With the heavy ball the softmax law holds up to a rate that falls as the momentum $m$ grows: .22 without "
            "momentum, .09 at .6, .03 at .8, nowhere at .98. What decides is nearly the effective rate: the border lies at "
            "lr/(1 - m) of .2 to .4 over the whole range, below the rates at which single steps break the law without "
            "momentum. To the left, at lr/(1 - m) below .013, the runs end before the logits have moved."
        ),
        cells=80,
        sets={"optimizer": ["momentum"], "ratio": [1.0]},
    ),
    Plate(
        name="joma-stationary",
        title="JoMA: how long gradients are stationary",
        claim="joma.stationarity",
        over=("gone=3e-4:.004:log", "depth=0,1,2,3"),
        finding=(
            "Gradients are stationary, in the sense that the saliency has changed by less than 10% and has not turned beyond "
            "a cosine of .99, until .15 to .2% of the loss is gone, and no longer: without a further tanh layer above the "
            "first as with three. At equal progress depth does not make the assumption worse; deep networks only get there in "
            "fewer steps. By the time a tenth of the loss is gone, as `joma.stationarity` measures it, it fails by far."
        ),
        cells=60,
        seeds=32,
        sets={"upper": ["tanh"], "lr": [0.02], "every": [1.0], "records": [600]},
    ),
    Plate(
        name="joma-activation",
        title="JoMA: how long gradients are stationary, by activation",
        claim="joma.stationarity",
        over=("gone=1e-5:.004:log", "upper=id,tanh,relu"),
        finding=(
            "With two further layers. Behind linear and tanh layers gradients stay stationary until .2% of the loss is gone, "
            "behind ReLUs until .02% at most (grey: a few of 32 networks change at once, which leaves the mean undecided), "
            "and .03% is too much: a unit that is switched on or off changes the gradient in one step. The right end of that "
            "row is grey because these networks have not lost .3% by the end."
        ),
        cells=45,
        seeds=32,
        sets={"depth": [2.0], "lr": [0.02], "every": [1.0], "records": [600]},
    ),
    Plate(
        name="joma-order",
        title="JoMA: the drift of the invariant in discrete steps",
        claim="joma.linear_invariant",
        over=("lr=.0003:.5:log", "ratio=.01:100:log"),
        finding=(
            "The drift of the invariant is of first order in the step size up to a rate of .2 where $z$ learns more slowly "
            "than $v$ (ratio below .2), up to .5 and more where it learns ten times faster. At equal rates the order is lost "
            "from .08 on; below that the claim is toothless there (triangles): one of its rivals, the law of equal rates, is "
            "then the law."
        ),
        sets={"phi": ["tanh"], "loss": ["squared"], "depth": [2.0]},
    ),
    Plate(
        name="galore-bound",
        title="GaLore: the bound on the stable rank",
        claim="galore.stable_rank_bound",
        over=("step=.25:1.5", "bend=0:.2"),
        finding=(
            "The bound holds up to the largest step that the theorem allows (dotted) and not beyond, and only while $A$ does "
            r"not depend on $W$: where it does (bend: the share of $A$ that follows $\tanh W$) .11 breaks it at a quarter of "
            "the limit, .015 at .4 of it, and anything at larger steps. Shorter steps are not shown: there the other modes "
            "have not decayed by the end of the runs."
        ),
        cells=200,
    ),
    Plate(
        name="galore-varying",
        title="GaLore: coefficients that depend on the weights",
        claim="galore.fixed_proj_varying",
        over=("step=.005:.9:log", "lip_a=.01:3:log"),
        finding=(
            "The bound on each step holds everywhere, also for $L_A$ = 3 (lip_a). What stops is its tightness: the steepest "
            r"step stays within half of the room $\eta L_B L_C D^2$ only for $L_A$ below .45 to .7, hardly depending on the "
            "step size (exponent .09). For a steep $A$ the bound is loose."
        ),
        cells=200,
    ),
    Plate(
        name="galore-period",
        title="GaLore: how often the subspace is found again",
        claim="galore.switching",
        over=("step=.05:2.2:log", "every=1:300:log"),
        finding=(
            r"The gradient vanishes within 600 steps for learning rates of .16 to 2 over $\lambda_{max}$ (step), 2 being the "
            "limit of plain descent, if the subspace is found again every 35 steps or sooner. Later is too late at every rate: "
            "each subspace of 4 of 10 dimensions leaves about a quarter of the gradient, however long it is kept, so that what "
            "counts is their number; to the left steps are too short. What the rank of the update should be holds at all but "
            "one point below 2."
        ),
        cells=100,
        seeds=32,
    ),
    Plate(
        name="galore-noise",
        title="GaLore: noise against singular vectors",
        claim="galore.noise_counterexample",
        over=("lr=1e-4:.1:log", "noise=.03:30:log"),
        finding=(
            "The counterexample works in a window: noise from 1 to 8 (it was published at 5) and rates from 2e-4 to 2e-3. "
            "With less noise singular vectors learn the signal, too. With larger rates the noise itself keeps random "
            "directions from their prediction; with smaller ones, and with more noise, random directions have not learned "
            "after 10,000 steps. So it is an example, and no general defect of singular vectors."
        ),
        cells=100,
        seeds=64,
    ),
    Plate(
        name="emer-bounded",
        title="Superposition's emergence: bounded growth",
        claim="emer.bounded",
        over=("density=.05:.95", "inside=2,3"),
        finding=(
            "Growth is bounded as the theorem says at every density of edges where three vertices are inside. With two inside "
            "it is up to a density of .85: there the degree of the middle vertex falls below the mean (dotted), which the "
            r"theorem excludes, the root of $F(\mu) = d_p$ moves to negative $\mu$, and a dull theory, that nothing moves, is "
            "no longer rejected: the claim is toothless there rather than false."
        ),
        cells=60,
    ),
    Plate(
        name="joma-hblt",
        title="JoMA: saliency in hierarchical latents",
        claim="joma.hblt_cancellation",
        over=("rho=.05:.995", "depth=2,3,4,5,6"),
        finding=(
            r"The identity holds in exact arithmetic at every $\rho$ and depth; what stops is float64. The saliency is "
            r"proportional to $\rho^{L-1}$ and found as a difference of numbers near one, so that its relative error passes "
            r"the bound of $10^{-12}$ where $\rho^{L-1}$ falls below about $10^{-2}$: at depth 6 below $\rho$ = .36, at depth "
            "3 below .07."
        ),
        cells=75,
    ),
    Plate(
        name="rev-loss",
        title="The reversal curse: the bound on the reverse loss",
        claim="rev.bil_lower",
        over=("d=10,20,40,80,120,160,200", "sigma=1e-4:1:log"),
        finding=(
            "The reverse loss stays at that of a guess from $d$ = 80 on at starts up to .24, from $d$ = 160 on up to .32: "
            r"what decides is how nearly orthogonal random tokens are, $1/\sqrt d$, and that the start is small against what "
            "is learned. At $d$ = 20 and 40 the mean loss cannot be told from a guess's (grey); at $d$ = 10 also the "
            "theorem's bound itself fails: tokens overlap so much that the reverse direction is learned along. This map was drawn "
            r"while the claim's mean was still judged against $\ln m$ alone."
        ),
        cells=84,
    ),
    Plate(
        name="rev-pairs",
        title="The reversal curse: how many pairs",
        claim="rev.bil_lower",
        over=("d=10,20,40,80,120,160,200", "pairs=3,5,8,12,20"),
        finding=(
            "More pairs need more room: the reverse loss stays at that of a guess from $d$ = 80 on with up to 8 pairs, from $d$ = "
            "120 on with 12 and 20. Below that it exceeds it, since overlaps of random tokens add up over the pairs: with 20 pairs "
            "by .81 nats at $d$ = 40 and .04 at 200, a fall like $d^{-1.9}$; from 8 to 20 pairs it grows fourfold. The theorem's "
            "lower bound fails only with 3 and 5 pairs at $d$ of 10 and 20; with more the loss is worse than a guess's. At "
            "$d$ = 10 eight and more pairs do not fit any more (grey). This map was drawn while the claim's mean was still judged "
            r"against $\ln m$ alone; what it exceeds that by is now part of the law."
        ),
        cells=35,
        seeds=96,
    ),
    Plate(
        name="li2-stages",
        title="Li2: the stages of grokking",
        claim="li2.stages",
        over=("share=.2:.95", "lr=.001:.1:log"),
        finding=(
            "The stages are in order wherever networks of 256 nodes generalise: at none of the 25 points where the gates are "
            "met does a check fail. What ends the region is the gate: below a share of pairs of .86 at a rate of .001, of .57 "
            "at .05, test accuracy stays under .95 in the epochs given; where rates are .05 and pairs many, nodes overlap "
            "more than the claim allows. No point refutes the order of stages."
        ),
        cells=45,
        seeds=2,
    ),
    Plate(
        name="li2-share",
        title="Li2: the share of pairs that networks need, by size of the group",
        claim="li2.stages",
        over=("group=11,13,17,19,23,29,31", "share=.3:.95"),
        finding=(
            "What ends the region of the stages is again that networks do not generalise in 200 epochs (grey). The share of "
            "pairs at which they do falls from .95 of $Z_{13}$ to .87, .81, .73, .65 and .63 of $Z_{17}$, $Z_{19}$, $Z_{23}$, "
            r"$Z_{29}$ and $Z_{31}$: like $M^{-0.5}$, more slowly than the $\ln M/M$ of Theorem 4, which falls like $M^{-0.66}$ "
            "over these sizes; $Z_{11}$ does not get there at all. Where networks generalise no check fails, at any size."
        ),
        cells=63,
        seeds=2,
    ),
    Plate(
        name="li2-decay",
        title="Li2: the stages over learning rate and weight decay",
        claim="li2.stages",
        over=("lr=.001:.1:log", "decay=1e-6:.02:log"),
        finding=(
            "At .8 of the pairs. Above a rate of .02 networks generalise within 200 epochs with practically no weight decay; at "
            "smaller rates they need it, 4e-5 at .003 to .01 and 1.4e-4 at .001, or they stop at a test accuracy of .8 to .9. "
            "At decays of .0005 (large rates) to .0017 they generalise all the same and sooner, but nodes overlap more than the "
            "claim allows (grey), and at .02 nothing is learned at any rate. In between the stages are in order at every point "
            "but one, rate .001 and decay .0017, where the signal has fallen to .26 of its maximum by the end and .25 is asked "
            "for."
        ),
        cells=64,
        seeds=2,
    ),
    Plate(
        name="li2-nodes",
        title="Li2: independent nodes, by width and learning rate",
        claim="li2.stage2_nodes",
        over=("hidden=16,32,64,128,256", "lr=.35:4:log"),
        finding=(
            "Nodes forecast one by one: wherever networks generalise within 120 epochs the claim holds, and how many nodes are "
            "forecast rightly hardly depends on width or rate: at a rate of 1.2 it is .82, .78, .69, .73 and .75 of the nodes "
            "with 16, 32, 64, 128 and 256 of them, at rates from .35 to 1.2 it falls by .02 to .1. So nodes are as independent "
            "in wide networks as in narrow ones. What falls, like the power -.3 of the width, is the lead over the largest "
            "irrep of the start, which is right for .29 of 16 nodes and .51 of 256. Smaller rates are too slow, larger ones "
            "unstable (grey: the gate on the test accuracy)."
        ),
        cells=30,
        seeds=24,
    ),
    Plate(
        name="sink-families",
        title="Attention sinks over families of attention",
        claim="sink.bb_emerge",
        over=("attention=softmax,zero_sink,sink_bias,sigmoid,relu", "every=3,6,9,12,15"),
        finding=(
            "A sink in the sense of the claim is there from 360 steps (every times 40) on with softmax attention, and with a "
            "fixed zero or a learned bias in the denominator as well: neither keeps token 0 from taking the idle weight in "
            "these small blocks. With ReLU attention it never is, weights can be zero without one. With sigmoid attention the "
            "checks are not decided by 16 runs. Earlier (grey) the networks have not learned to copy, which the gate asks "
            "for: no sink is seen to come before the task is learned."
        ),
        cells=25,
    ),
    Plate(
        name="sup-scales",
        title="Superposition: how large the attention's logits must be",
        claim="sup.superposition",
        over=("eta=.1:10:log", "nodes=8,16,24,48"),
        finding=(
            "The construction works for every size of graph, dense or random, once the factor of the attention's logits (eta) "
            "is above .25 to .27, at 8 vertices as at 48: the border is flat, the margin between what is attended to and what "
            "is not does not shrink with the graph. Below, the softmax lets other tokens through, and the sets of the "
            "thoughts are wrong."
        ),
        cells=60,
        seeds=2,
        sets={"kind": ["dense", "random"]},
    ),
    Plate(
        name="sup-width",
        title="Superposition: how many numbers a block needs",
        claim="sup.superposition",
        over=("rows=40,44,48,50,51,52,53", "nodes=8,12,16,24,32,48"),
        finding=(
            "Tokens in a frame of fewer numbers than tokens: with 53 numbers a block for 53 tokens every thought of every "
            "graph is right, with 52 none is, from 8 vertices with 40 edges (.7 of all) to 48 (.02). The border does not "
            "depend on the density of the graph: the thresholds have no slack that a sparse graph could use. So the "
            "construction's width is linear in the vocabulary, as the theorem states it."
        ),
        cells=42,
        seeds=2,
        sets={"kind": ["random"], "embedding": ["frame"]},
    ),
    Plate(
        name="sln-weights",
        title="Spectral Line Navigator: weights of the eigenvectors",
        claim="sln.rate99",
        over=("power=0:4", "density=.15:.9"),
        finding=(
            r"Eigenvectors of the random-walk Laplacian of the line graph with weights $\lambda^{-p}$ (power) on random graphs "
            "of 8 vertices: the claim's 99% hold at p = 1 for every density from .15 to .9, where practically every pair is "
            "led along a shortest path, and hardly anywhere else below a density of .6. Without weights (p = 0) they need a "
            "density of .9. At p = .5 and 2 sparse graphs are too close to the mark to tell (98.9 to 99.8%); from p = 2.5 on "
            "it is missed there again. In the densest graphs any weights do."
        ),
        cells=80,
        seeds=24,
        sets={"rows": ["own"], "nodes": [8.0]},
    ),
    Plate(
        name="cogo-decay",
        title="CoGO: Occam's razor by weight decay",
        claim="cogo.occam_wd",
        over=("decay=1e-5:.1:log", "lr=.01:3:log"),
        finding=(
            "Weight decay finds the smaller solution in a band. Its lower border is a product: rate times decay times the "
            "20,000 steps is about 5, the time in which the larger solution's surplus decays. Its upper border lies between "
            r"decays of .01 and .032 at every rate, where the equilibrium $6\frac{d-1}{d}s(1-s^3) = \lambda d \|z'\|^2$ loses "
            r"its root, at $\lambda$ = .021: larger decays destroy the solution itself."
        ),
        cells=60,
    ),
    Plate(
        name="cogo-orders",
        title="CoGO: four or six nodes at every frequency",
        claim="cogo.train_orders",
        over=("decay=1e-5:1e-3:log", "width=32:512:log"),
        finding=(
            "Every frequency ends with four or six nodes in a corner with two straight sides. One is a width: 91 nodes are "
            r"enough at $d = 23$, while with 64, which would hold any mixture of fours and all but the purest of sixes (44 to 66), "
            "a tenth of the frequencies come out wrong at large decays and a third at small ones. The other is a time: after 9900 "
            "epochs decays from 3e-5 on have done their work, 1e-5 has not at any width, so decay times epochs is about .3, where "
            "more nodes neither help nor hurt. Within the corner the same product tells fours from sixes (`cogo.wd_order`)."
        ),
        cells=45,
        seeds=6,
    ),
    Plate(
        name="galore-rank",
        title="GaLore: rank against rows of noise",
        claim="galore.noise_rank",
        over=("noise=.03:30:log", "rank=2,3,4,5"),
        finding=(
            "With one, three and five of six rows noise the law holds at all times from a noise of 1.5 on, seven times the "
            "signal's norm at the start, for ranks 2 and 4, and from 3.5 for rank 3: the signal is learned if there are more "
            "singular vectors than rows of noise, and leaks otherwise. At rank 5, where the leak is largest, 32 runs leave 1% "
            "open from 1.2 on (grey). With less noise more leaks than to leading order where the rank equals a number of rows "
            "of noise; under about .3 noise no longer fills the basis, and any rank learns the signal until it has sunk to the "
            "noise."
        ),
        cells=48,
        seeds=32,
        sets={"noisy": [1.0, 3.0, 5.0]},
    ),
)
