-- The steps and ends of aggregates, as functions.
select float8_accum('{4,140,2900}'::float8[], 100);
select float4_accum('{4,140,2900}'::float8[], 100.5);
select float8_accum('{0,0,0}'::float8[], 'NaN'), float8_accum('{0,0,0}'::float8[], 'Infinity'), float8_accum('{2,3,4}'::float8[], 'Infinity');
select float8_accum('{1,1e308,0}'::float8[], 1e308);
select float8_accum(null, 1), float8_accum('{1,2,3}'::float8[], null);
select float8_combine('{3,60,200}'::float8[], '{0,0,0}'::float8[]), float8_combine('{0,0,0}'::float8[], '{2,180,200}'::float8[]), float8_combine('{3,60,200}'::float8[], '{2,180,200}'::float8[]);
select float8_combine('{1,1e308,0}'::float8[], '{1,1e308,0}'::float8[]);
select float8_avg('{4,140,2900}'::float8[]), float8_var_pop('{4,140,2900}'::float8[]), float8_var_samp('{4,140,2900}'::float8[]), float8_stddev_pop('{4,140,2900}'::float8[]), float8_stddev_samp('{4,140,2900}'::float8[]);
select float8_avg('{0,0,0}'::float8[]), float8_var_pop('{0,0,0}'::float8[]), float8_var_samp('{1,5,0}'::float8[]), float8_stddev_samp('{1,5,0}'::float8[]), float8_var_pop('{1,5,0}'::float8[]);
select float8_regr_accum('{4,140,2900,1290,83075,15050}'::float8[], 200, 100);
select float8_regr_accum('{0,0,0,0,0,0}'::float8[], 'NaN', 1), float8_regr_accum('{0,0,0,0,0,0}'::float8[], 1, 'Infinity');
select float8_regr_combine('{3,60,200,750,20000,2000}'::float8[], '{0,0,0,0,0,0}'::float8[]), float8_regr_combine('{0,0,0,0,0,0}'::float8[], '{2,180,200,740,57800,-3400}'::float8[]), float8_regr_combine('{3,60,200,750,20000,2000}'::float8[], '{2,180,200,740,57800,-3400}'::float8[]);
select float8_regr_sxx(s), float8_regr_syy(s), float8_regr_sxy(s), float8_regr_avgx(s), float8_regr_avgy(s), float8_regr_r2(s), float8_regr_slope(s), float8_regr_intercept(s), float8_covar_pop(s), float8_covar_samp(s), float8_corr(s) from (values ('{5,240,6280,1490,95080,8680}'::float8[]), ('{0,0,0,0,0,0}'), ('{1,2,0,3,0,0}'), ('{2,2,0,3,5,0}'), ('{2,2,5,3,0,0}')) v (s);
select int2_avg_accum('{2,7}'::int8[], 3::int2), int4_avg_accum('{2,7}'::int8[], 3), int2_avg_accum_inv('{2,7}'::int8[], 3::int2), int4_avg_accum_inv('{2,7}'::int8[], 3);
select int8_avg('{2,7}'::int8[]), int8_avg('{0,0}'::int8[]), int2int4_sum('{2,7}'::int8[]), int2int4_sum('{0,0}'::int8[]);
select interval_accum('{1 day,0 s}'::interval[], '2 hours'), interval_accum_inv('{1 day,00:00:00.000002}'::interval[], '2 hours'), interval_combine('{1 day,00:00:00.000002}'::interval[], '{1 month,00:00:00.000001}'::interval[]);
select interval_avg('{1 day,00:00:00.000002}'::interval[]), interval_avg('{1 day,0 s}'::interval[]);
