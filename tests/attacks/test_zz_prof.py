"""scratch"""
import cProfile, pstats, time, resource, os
from test_specs_from_a_grammar import attacked, findings_of, manner_of
import random
from collections import Counter
from spec_grammar import attack
def test_prof(attacked):
    n=int(os.environ.get("N","100"))
    S=int(os.environ.get("S","5"))
    from attacked_office import Manner
    warm=findings_of(attacked, S, range(1000,1010), 1000, thorough=0.3)
    print(warm)
    p=cProfile.Profile(); c=time.process_time(); t=time.monotonic()
    if os.environ.get("PROF"): p.enable()
    if os.environ.get("ALLF"):
        out=Counter(); seen=Counter()
        for i in range(n):
            ch=random.Random(f"{S} {i}"); made=attack(ch,i)
            tr=attacked.tried(made, manner_of(ch, .3)); out[tr.outcome]+=1
            if tr.outcome in os.environ.get("SHOW",""): print(i, tr.outcome, tr.ran["release"].err[:600])
            if tr.findings: print("FOUND", i, made, tr.findings, "\n", {k:(v.code,v.err[-1500:]) for k,v in tr.ran.items()})
            if i%50==49:
                x=attacked.in_the_end(); attacked.renew()
                if x: print("END",x)
        f=[]
    else: out,f=findings_of(attacked, S, range(n), 1000, thorough=0.3)
    p.disable()
    print("\nCPU", time.process_time()-c, "wall", time.monotonic()-t, out, f)
    if os.environ.get("PROF"):
        p.dump_stats("/tmp/wt/p.out")
