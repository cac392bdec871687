"""What a program is and means, and the record of the machine it is for.

The words of this package, one for each concept: a *tensor* lies in global memory, a *tile* in an
on-chip memory *space*; a *span* is a stretch of source text; a *row* is an entry of a table; a
*group* is 32 elements along K that share one E8M0 scale; a *box* is the 32 bytes of 16 rows by 2
groups in which scales are stored.
"""
