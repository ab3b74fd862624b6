"""Adaptive"""
from __future__ import annotations
import math
from dataclasses import dataclass
from typing import Literal
import numpy as np
from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism
@dataclass(frozen=True)
class Adaptive(Mechanism):
    """Settings:"""
    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        from dphist_pipeline.mechanisms._experts import mixed
        noisy = counts.noisy_cells(budget)
        return Estimate(counts.domain, mixed(noisy, _experts(noisy)).values, budget.charges, unbiased=noisy)

def _experts(noisy):
    from dphist_pipeline.solvers.expert_rules import Expert
    from dphist_pipeline.solvers.neighbour_levels import groups_by_rank, segment_levels, window_means
    from dphist_pipeline.mechanisms._experts import stream
    ex=[Expert('level','','level'),Expert('lean','','lean'),Expert('few','','sparse'),Expert('crowded','','crowded')]
    z=noisy.values; m=z.size; top=2.0**62/m
    whole=np.clip(z,-top,top).astype(np.int64); line=z.ravel()
    cov=[]
    if z.ndim==1:
        price=2*noisy.variance
        folds=(stream(line,m)&np.uint64(1)).astype(bool)
        cov=[(f'w{h}',window_means(whole,(h,)).ravel()) for h in (1,4,16,64,256) if h==1 or h<m/2]
        cov+=[('segp',segment_levels(line,folds,price)),('segb',segment_levels(line,folds,price*max(1,math.log(m))))]
    else:
        for h in (1,2,4,8):
            if h==1 or h<max(z.shape): cov.append((f'w{h}',window_means(whole,(h,)*z.ndim).ravel()))
        for ax in range(z.ndim):
            for h in (1,4,z.shape[ax]):
                if h<z.shape[ax] or (h==z.shape[ax] and z.ndim>2): cov.append((f'a{ax}_{h}',window_means(whole,tuple(h if i==ax else 0 for i in range(z.ndim))).ravel()))
    loc=[];sm=[]
    import os
    kinds=os.environ.get('KINDS','ll,ls,rs').split(',')
    for nm,lev in cov:
        g=groups_by_rank(lev)
        if 'll' in kinds: loc.append(Expert('locallean_'+nm,'','lean',None,g))
        if 'ls' in kinds: loc.append(Expert('local_'+nm,'','sparse',None,g))
        if nm.startswith('seg') and 'rl' in kinds: sm.append(Expert('reslean_'+nm,'','lean',np.rint(lev),g))
        if 'rs' in kinds: sm.append(Expert('res_'+nm,'','sparse',np.rint(lev),g))
    return ex+loc+sm
