! The library's grammar and the words for our own actions. Included last.
Include "grammar";
Verb 'talk'         * 'to'/'with' creature -> TalkTo;
Verb 'knock' 'rap'  * noun -> Knock
                    * 'on'/'at' noun -> Knock;
Verb 'pour'         * held -> Empty
                    * held 'in'/'into'/'on'/'onto'/'over' noun -> Pour;
Verb 'hang'         * held 'on'/'onto'/'from'/'over'/'above' noun -> Hang
                    * held -> Hang;
Verb 'mount' 'install' 'fit'
                    * held 'on'/'onto'/'to'/'in'/'into' noun -> Tie;
Verb 'use'          * noun -> Use
                    * noun 'on'/'with' noun -> Use;
Extend 'attach'     * held 'on'/'onto'/'in'/'into' noun -> Tie;
Extend 'fill'       * noun 'with' noun -> Fill;
Extend 'look'       * 'behind' noun -> LookBehind;
Verb 'heat' 'warm' 'boil' 'cook'
                    * noun -> Heat
                    * noun 'on'/'with'/'over' noun -> Heat;
Extend 'take'       * noun 'with' held -> Take;
Extend 'get'        * noun 'with' held -> Take;
Extend 'burn'       * noun 'at'/'from'/'in'/'on' noun -> Burn;
Extend 'cut'        * noun 'with' held -> Cut;
Extend 'attack'     * noun 'with' held -> Attack;
