"""Theory: the errors of a problem without sampling a network.

`positions` and `step` say what a neuron becomes; `kernels` what its features are; `bulk` what training
makes of them; `asymptotic` puts these together, `equivalent` starts from given weights instead.
"""
