// Claims by atomics against claims by bins of owners: two threads search top-down, in rounds as kernels/top_down.cl has them.
//
//   bins GRAPH.sg ROOTS        a graph that `socbfs convert` wrote, and a file of 16 roots; each in turn, three times
//
// Bins: a thread puts what seems new into a bin for the owner of its piece of the bitmap; after a barrier each owner claims what is in its
// bins, with plain stores.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define T 2
#define R 64
typedef uint32_t u; static int64_t n; static u *off, *tg, *par, *q, *nx, *deg; static uint32_t *vis; static u tail, head, len; static uint64_t edges;
static pthread_barrier_t bar; static int mode; static u *bv[T][T], *bp[T][T]; static u bc[T][T];
static void rounds(int t){ u vb[R],ve[R],vu[R],cv[4096],cn[4096]; uint64_t e=0; u bcount[T]={0};
 for(;;){ u b=__atomic_fetch_add(&head,R,__ATOMIC_RELAXED); if(b>=len)break; u k=len-b<R?len-b:R; u x=0;
  for(u i=0;i<k;i++){u v=q[b+i];vb[i]=off[v];ve[i]=off[v+1];vu[i]=v;}
  for(u i=0;i<k;i++) if(vb[i]<ve[i]) x^=tg[vb[i]]^tg[ve[i]-1];
  __asm__ volatile(""::"r"(x));
  u c=0; for(u i=0;i<k;i++) for(u a=vb[i];a<ve[i];a++){u v=tg[a];cv[c]=v;cn[c]=vu[i];c+=~(__atomic_load_n(&vis[v>>5],__ATOMIC_RELAXED)>>(v&31))&1;}
  if(mode==0){ u f=0; for(u i=0;i<c;i++){u v=cv[i],bit=1u<<(v&31);cv[f]=v;cn[f]=cn[i];f+=!(__atomic_fetch_or(&vis[v>>5],bit,__ATOMIC_RELAXED)&bit);}
   x=0; for(u i=0;i<f;i++) x^=par[cv[i]]; __asm__ volatile(""::"r"(x));
   for(u i=0;i<f;i++){par[cv[i]]=cn[i];e+=off[cv[i]+1]-off[cv[i]];}
   if(f){u at=__atomic_fetch_add(&tail,f,__ATOMIC_RELAXED);memcpy(nx+at,cv,4*f);}
  } else for(u i=0;i<c;i++){ int o=cv[i]>=n/T/32*32; bv[t][o][bcount[o]]=cv[i]; bp[t][o][bcount[o]++]=cn[i]; }
 }
 if(mode){ for(int o=0;o<T;o++) bc[t][o]=bcount[o]; pthread_barrier_wait(&bar);
  for(int s=0;s<T;s++) for(u b=0;b<bc[s][t];b+=256){ u m=bc[s][t]-b<256?bc[s][t]-b:256,f=0;
   for(u i=0;i<m;i++){u v=bv[s][t][b+i],bit=1u<<(v&31),w=vis[v>>5];cv[f]=v;cn[f]=bp[s][t][b+i];f+=!(w&bit);vis[v>>5]=w|bit;}
   u x=0; for(u i=0;i<f;i++) x^=par[cv[i]]; __asm__ volatile(""::"r"(x));
   for(u i=0;i<f;i++){par[cv[i]]=cn[i];e+=off[cv[i]+1]-off[cv[i]];}
   if(f){u at=__atomic_fetch_add(&tail,f,__ATOMIC_RELAXED);memcpy(nx+at,cv,4*f);} } }
 __atomic_fetch_add(&edges,e,__ATOMIC_RELAXED);
}
static int stop;
static void*other(void*a){ for(;;){pthread_barrier_wait(&bar); if(stop)return 0; rounds(1); pthread_barrier_wait(&bar);} }
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e3+t.tv_nsec/1e6;}
static int cmp(const void*a,const void*b){double x=*(double*)a-*(double*)b;return x<0?-1:x>0;}
int main(int c,char**v){FILE*f=fopen(v[1],"rb");char d;int64_t m;fread(&d,1,1,f);fread(&m,8,1,f);fread(&n,8,1,f);int64_t*o=malloc(8*(n+1));fread(o,8,n+1,f);
 off=malloc(4*(n+2));for(int64_t i=0;i<=n;i++)off[i]=o[i];tg=malloc(4*o[n]);fread(tg,4,o[n],f);par=malloc(4*n);q=malloc(4*n+64);nx=malloc(4*n+64);vis=calloc(n/32+2,4);
 for(int i=0;i<T;i++)for(int j=0;j<T;j++){bv[i][j]=malloc(4*o[n]);bp[i][j]=malloc(4*o[n]);memset(bv[i][j],1,4*o[n]);memset(bp[i][j],1,4*o[n]);}
 pthread_barrier_init(&bar,0,T);pthread_t th;pthread_create(&th,0,other,0);double t[2][200];int k[2]={0};
 f=fopen(v[2],"r");u r;int turn=0;u reached[2];
 while(fscanf(f,"%u",&r)==1&&turn<16){for(int rep=0;rep<3;rep++)for(int mo=0;mo<2;mo++){mode=(mo+rep)&1;memset(par,255,4*n);memset(vis,0,n/8+4);double b=now();
   par[r]=r;vis[r>>5]|=1u<<(r&31);q[0]=r;len=1;u all=1;
   while(len){head=tail=0;pthread_barrier_wait(&bar);rounds(0);pthread_barrier_wait(&bar);u*s=q;q=nx;nx=s;len=tail;all+=len;}
   t[mode][k[mode]++]=now()-b;reached[mode]=all;} if(reached[0]!=reached[1])printf("differ %u %u\n",reached[0],reached[1]);turn++;}
 stop=1;pthread_barrier_wait(&bar);pthread_join(th,0);
 for(int i=0;i<2;i++){qsort(t[i],k[i],8,cmp);printf("%s median %.2f ms least %.2f p25 %.2f (%d)\n",i?"bins":"atomics",t[i][k[i]/2],t[i][0],t[i][k[i]/4],k[i]);}}
