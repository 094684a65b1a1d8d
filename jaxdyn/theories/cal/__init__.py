"""Calibration: exactly solvable cases that every trainer and every ODE solver of the suite must reproduce."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Calibration",
    about=(
        "Networks and quadratics whose training has an exact solution. Every trainer and every ODE solver of the suite must "
        "reproduce them, at the order in the step size that numerical analysis gives, before it serves any other theory."
    ),
    setup=(
        "Linear networks with one or more hidden layers, products of two numbers, quadratics with and without noise, and "
        "one small tanh network. They are trained by gradient descent with and without momentum and weight decay, by SGD "
        "over batches in random order, and by gradient flow with each of the solvers. Whatever the exact solution leaves "
        "open, such as the error at finite steps, is judged as an order in the step size."
    ),
    papers=(
        jd.Paper(
            "1312.6120",
            "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks",
            "A. Saxe, J. McClelland, S. Ganguli",
            "ICLR 2014",
        ),
        jd.Paper("2009.11162", "Implicit Gradient Regularization", "D. Barrett, B. Dherin", "ICLR 2021"),
        jd.Paper(
            "2101.12176",
            "On the Origin of Implicit Regularization in Stochastic Gradient Descent",
            "S. Smith, B. Dherin, D. Barrett, S. De",
            "ICLR 2021",
        ),
        jd.Paper(
            "2103.00065",
            "Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability",
            "J. Cohen, S. Kaur, Y. Li, J. Z. Kolter, A. Talwalkar",
            "ICLR 2021",
        ),
    ),
    topics=(
        "modified_flow",
        "sgd_mean",
        "sgd_noise",
        "saxe",
        "staircase",
        "eos",
    ),
    shown=("cal.gd_order1",),
    instruments=("instrument",),
)
